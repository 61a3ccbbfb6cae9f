//! Each rule of NDIS broken on purpose: the run must end with exactly that rule.

use super::fake::Misdeed;
use super::life::exercise;
use super::run;
use crate::ndis::Returns;
use crate::ndis::rules::*;
use crate::sim::MILLISECOND;
use crate::verifier::Rule;
use crate::verifier::rules::IRQL;

fn expected(misdeed: Misdeed) -> Rule {
    match misdeed {
        Misdeed::None => unreachable!("does nothing wrong"),
        Misdeed::HandlerMissing => NDIS_HANDLER_MISSING,
        Misdeed::RegistersNothing => NDIS_DRIVER_ENTRY,
        Misdeed::StaysRegistered => NDIS_NOT_DEREGISTERED,
        Misdeed::WrongPoolHeader => NDIS_OBJECT_HEADER,
        Misdeed::GeneralFirst => NDIS_ATTRIBUTES,
        Misdeed::NoGeneral => NDIS_ATTRIBUTES_MISSING,
        Misdeed::DmaFirst => NDIS_BEFORE_ATTRIBUTES,
        Misdeed::AttributesLate => NDIS_WRONG_CONTEXT,
        Misdeed::PauseFails => NDIS_RETURN_STATUS,
        Misdeed::PauseCompletedTwice => NDIS_DOUBLE_COMPLETE,
        Misdeed::PauseNever => NDIS_NEVER_COMPLETED,
        Misdeed::PauseWithSends => NDIS_PAUSED_WITH_SENDS,
        Misdeed::PauseWithReceives => NDIS_PAUSED_WITH_RECEIVES,
        Misdeed::ResetWithSends => NDIS_RESET_WITH_SENDS,
        Misdeed::ResetWithOid => NDIS_RESET_WITH_OID,
        Misdeed::SendCompletedTwice => NDIS_SEND_DOUBLE_COMPLETE,
        Misdeed::SendNever => NDIS_SEND_NEVER_COMPLETED,
        Misdeed::SendWithoutStatus => NDIS_SEND_STATUS,
        Misdeed::SendWrites | Misdeed::SendDropsBuffer => NDIS_SEND_MODIFIED,
        Misdeed::SendsWhilePaused => NDIS_SEND_AFTER_PAUSE,
        Misdeed::ReceivesWhilePaused => NDIS_RECEIVE_STATE,
        Misdeed::ReceivesTwice => NDIS_RECEIVE_TWICE,
        Misdeed::ReceiveCountWrong | Misdeed::ReceiveSourceWrong => NDIS_RECEIVE_LIST,
        Misdeed::ReceiveTooLong | Misdeed::ReceiveTooShort => NDIS_RECEIVE_LENGTH,
        Misdeed::ReceiveLengthBeyondChain | Misdeed::ReceiveCurrentMdlWrong | Misdeed::ReceiveFramesWrong => {
            NDIS_MDL_CHAIN
        }
        Misdeed::ReceiveWrites => NDIS_RECEIVE_MODIFIED,
        Misdeed::ReceiveFreed | Misdeed::NblFreedTwice => NDIS_NBL_FREED,
        Misdeed::OidCompletedTwice | Misdeed::OidReturnedAndCompleted => NDIS_OID_DOUBLE_COMPLETE,
        Misdeed::OidNever => NDIS_OID_NEVER_COMPLETED,
        Misdeed::OidTooLong | Misdeed::OidNothingNeeded => NDIS_OID_LENGTH,
        Misdeed::OidPendingStatus => NDIS_OID_STATUS,
        Misdeed::StatusAfterHalt | Misdeed::StatusTooEarly => NDIS_STATUS_STATE,
        Misdeed::StatusHeader | Misdeed::LinkStateHeader => NDIS_STATUS_INDICATION,
        Misdeed::SglFreedTwice => NDIS_DMA,
        Misdeed::SglNotFreed => NDIS_DMA_OUTSTANDING,
        Misdeed::TimerFreedWhileSet | Misdeed::PeriodicTimerCancelledAtDispatch => NDIS_TIMER,
        Misdeed::WorkItemQueuedTwice | Misdeed::WorkItemFreedWhileQueued => NDIS_WORK_ITEM,
        Misdeed::LeaksTimer
        | Misdeed::LeaksPool
        | Misdeed::LeaksConfiguration
        | Misdeed::LeaksSharedMemory => NDIS_LEAK,
        Misdeed::SharedMemoryLength => NDIS_MEMORY,
        Misdeed::DispatchFlagAtPassive => NDIS_DISPATCH_FLAG,
        Misdeed::StaleHandle => NDIS_BAD_HANDLE,
        Misdeed::SleepsAtDispatch | Misdeed::SglAtPassive => IRQL,
    }
}

/// When received buffers are returned, and the seed, so that the misdeed has its occasion.
fn setting(misdeed: Misdeed) -> (Returns, u64) {
    match misdeed {
        // Long enough for them to be outstanding when the misdeed is done.
        Misdeed::PauseWithReceives
        | Misdeed::ReceiveWrites
        | Misdeed::ReceiveFreed
        | Misdeed::ReceivesTwice
        | Misdeed::ReceivesWhilePaused
        | Misdeed::SendsWhilePaused => (Returns::After(10 * MILLISECOND), 1),
        _ => (Returns::Mixed(100_000), 1),
    }
}

#[test]
fn every_misdeed_breaks_exactly_its_rule() {
    let mut wrong = Vec::new();
    for misdeed in Misdeed::ALL {
        let (returns, seed) = setting(*misdeed);
        let outcome = run(seed, move |machine| exercise(machine, *misdeed, returns));
        let rule = outcome.as_ref().err().and_then(crate::sim::Outcome::rule);
        if rule != Some(expected(*misdeed).name) {
            wrong.push(format!("{misdeed:?}: expected {}, got {outcome:?}", expected(*misdeed).name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_rule_has_a_misdeed() {
    let covered: Vec<_> = Misdeed::ALL.iter().map(|misdeed| expected(*misdeed).name).collect();
    let bare: Vec<_> =
        NDIS_RULES.iter().map(|rule| rule.name).filter(|name| !covered.contains(name)).collect();
    assert!(bare.is_empty(), "no misdeed breaks {bare:?}");
}
