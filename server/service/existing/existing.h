// SPDX-License-Identifier: Apache-2.0
/* What there is, in answers that something is missing (NOT_FOUND) or is there with other parameters
 * (ALREADY_EXISTS). Names that the sender's token may not use are neither shown nor guessed. */
#ifndef VXD_SERVER_SERVICE_EXISTING_EXISTING_H
#define VXD_SERVER_SERVICE_EXISTING_EXISTING_H

#include "proto/base/closest.h"
#include "server/request/request.h"

/* --- missing.c: there is none of that name ------------------------------------------------- */

enum {
    VXD_MISSING_LIST_BYTES = 112
};

/* The names that there are, as far as they are shown. */
struct vxd_missing {
    struct vxd_closest closest;
    char list[VXD_MISSING_LIST_BYTES]; /* "kitchen, yard" */
    size_t n_listed;
    size_t n;
};

/* Offers a name; begin with {.closest.word = the name that is missing}. */
void vxd_missing_offer(struct vxd_missing *missing, const char *name);

/* Writes what follows "there is no scene ...": the one that was meant, or the list; `what` is
 * "scenes", say. Returns text. */
const char *vxd_missing_text(const struct vxd_missing *missing, const char *what,
                             char *text, size_t n_bytes);

/* Each fails with NOT_FOUND. Those of maps, volumes, pose graphs and odometries are for whoever may look for
 * one by its name; the name has been
 * checked. */
enum vxd_status vxd_missing_scene(struct vxd_request *request, const char *field,
                                  const char *name, struct vxd_err *err);
enum vxd_status vxd_missing_map(struct vxd_request *request, const char *field,
                                const char *name, struct vxd_err *err);
enum vxd_status vxd_missing_volume(struct vxd_request *request, const char *field,
                                   const char *name, struct vxd_err *err);
enum vxd_status vxd_missing_posegraph(struct vxd_request *request, const char *field,
                                      const char *name, struct vxd_err *err);
enum vxd_status vxd_missing_odometry(struct vxd_request *request, const char *field,
                                     const char *name, struct vxd_err *err);
/* A network that is not loaded; says where it can be loaded, or which could be. */
enum vxd_status vxd_missing_network(struct vxd_request *request, const char *field,
                                    const char *name, struct vxd_err *err);

/* OK where networks_dir has the network's config, or cannot be read. */
enum vxd_status vxd_missing_network_file(struct vxd_request *request, const char *field,
                                         const char *name, struct vxd_err *err);

/* --- differing.c: the one that exists is another -------------------------------------------- */

/* The parameters that differ, as far as they are shown: "voxel_size_m is 0.1, not 0.2; depth ...". */
struct vxd_differing {
    char text[150];
    size_t n_shown;
    size_t n;
};

/* Note a parameter where what exists differs from what is wished. A byte count, say, of 0 means
 * "by default". */
void vxd_differing_number(struct vxd_differing *differing, const char *key, double has,
                          double wished);
void vxd_differing_flag(struct vxd_differing *differing, const char *key, bool has,
                        bool wished);
void vxd_differing_text(struct vxd_differing *differing, const char *key, const char *has,
                        const char *wished);
/* Notes one that is too long to show. */
void vxd_differing_other(struct vxd_differing *differing, const char *key, bool differs);

/* Fails with ALREADY_EXISTS where something was noted; `what` is "scene", say. */
enum vxd_status vxd_differing_check(const struct vxd_differing *differing,
                                    const char *what, const char *name,
                                    struct vxd_err *err);

#endif
