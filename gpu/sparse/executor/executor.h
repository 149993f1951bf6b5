// SPDX-License-Identifier: Apache-2.0
/* Networks that are built, checked, planned and run, and rows gathered from their outputs. */
#ifndef VXD_GPU_SPARSE_EXECUTOR_EXECUTOR_H
#define VXD_GPU_SPARSE_EXECUTOR_EXECUTOR_H

#include "gpu/sparse/executor/gather_rows.h"
#include "gpu/sparse/executor/net.h"

#endif
