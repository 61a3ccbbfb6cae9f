/*
 * The InfiniBand access layer of OpenFabrics for Windows, as far as IP over InfiniBand needs it: everything.
 */
#ifndef IBAL_H
#define IBAL_H

#include "base.h"
#include "ca.h"
#include "cm.h"
#include "ifc.h"
#include "pnp.h"
#include "qp.h"
#include "sa.h"
#include "work.h"

#endif
