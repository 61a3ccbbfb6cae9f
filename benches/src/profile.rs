//! Reading a profile that callgrind wrote (valgrind manual, "Callgrind Format Specification").

use std::collections::{BTreeMap, HashMap};

/// Instructions by the function that they are in, calls not included.
#[derive(Clone, Debug, Default)]
pub struct Profile(BTreeMap<String, u64>);

impl Profile {
    /// Reads a file's text.
    pub fn parse(text: &str) -> Self {
        let mut names: HashMap<&str, &str> = HashMap::new();
        let mut costs: BTreeMap<String, u64> = BTreeMap::new();
        let (mut function, mut after_call) = ("", false);
        for line in text.lines() {
            if let Some(name) = line.strip_prefix("fn=").or_else(|| line.strip_prefix("cfn=")) {
                // Names are given once, with a number that stands for them later.
                let (number, rest) = name.split_once(')').unwrap_or((name, ""));
                if !rest.trim().is_empty() {
                    names.insert(number, rest.trim());
                }
                if line.starts_with("fn=") {
                    function = names.get(number).copied().unwrap_or(name);
                }
            } else if line.starts_with("calls=") {
                after_call = true;
            } else if line.starts_with(['+', '-', '*'])
                || line.starts_with(|first: char| first.is_ascii_digit())
            {
                // The line after a call has what was spent in it.
                if !std::mem::take(&mut after_call)
                    && let Some(cost) =
                        line.split_whitespace().nth(1).and_then(|cost| cost.parse::<u64>().ok())
                {
                    *costs.entry(function.to_owned()).or_default() += cost;
                }
            }
        }
        Self(costs)
    }

    /// All instructions.
    pub fn total(&self) -> u64 {
        self.0.values().sum()
    }

    /// Instructions outside the functions of the lab, of the benchmarks, and of the names in `exports`.
    pub fn outside_lab(&self, exports: &[&str]) -> u64 {
        let costs = self.0.iter().filter(|(name, _)| !is_lab(name, exports));
        costs.map(|(_, cost)| cost).sum()
    }

    /// As [`Self::outside_lab`], by function, the dearest first.
    pub fn functions(&self, exports: &[&str]) -> Vec<(&str, u64)> {
        let costs = self.0.iter().filter(|(name, _)| !is_lab(name, exports));
        let mut functions: Vec<_> = costs.map(|(name, cost)| (name.as_str(), *cost)).collect();
        functions.sort_by_key(|(_, cost)| std::cmp::Reverse(*cost));
        functions
    }
}

fn is_lab(name: &str, exports: &[&str]) -> bool {
    let path = name.trim_start_matches('<');
    path.starts_with("ipoib_lab::") || path.starts_with("ipoib_benches::") || exports.contains(&name)
}
