// SPDX-License-Identifier: Apache-2.0
/* What the papers do and we do better, kept to compare: the four slab stores of scenes (SVDAG
 * editing, sections 4.2 and 5.1) and the slab index of hash maps (ASH, section 4.4). A context
 * has them when it is opened with this module's tables:
 *
 *     struct vxd_context_options options = {..., .extras = vxd_paper_stores()};
 *
 * Builds with VOXELD_PAPER=OFF leave the module out; there the tables are NULL, and asking for
 * one of the stores, or for the index, is answered with UNIMPLEMENTED. */
#ifndef VXD_GPU_PAPER_PAPER_H
#define VXD_GPU_PAPER_PAPER_H

#include "gpu/core/core.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The tables, which live as long as the process, or NULL in a build without them. */
#if defined(VXD_WITH_PAPER)
const struct vxd_context_extras *vxd_paper_stores(void);
#else
static inline const struct vxd_context_extras *vxd_paper_stores(void)
{
    return NULL;
}
#endif

#ifdef __cplusplus
}
#endif
#endif
