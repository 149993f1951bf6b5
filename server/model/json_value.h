// SPDX-License-Identifier: Apache-2.0
/* Strict reading of JSON values: a wrong kind, an unknown key or a value out of range is an
 * INVALID_ARGUMENT whose field is the value's path and whose message names the file. */
#ifndef VXD_SERVER_MODEL_JSON_VALUE_H
#define VXD_SERVER_MODEL_JSON_VALUE_H

#include <jansson.h>

#include "proto/base/base.h"

/* The capacity of a path, like vxd_err.field. */
#define VXD_JSON_PATH_BYTES 96

struct vxd_json {
    const char *file; /* for messages */
    struct vxd_err *err;
};

/* One key of an object; `to` is what the object's reader passed. */
struct vxd_json_key {
    const char *name;
    enum vxd_status (*read)(const struct vxd_json *json, const char *path,
                            const json_t *value, void *to);
};

/* Returns INVALID_ARGUMENT with the file's name before the message. */
enum vxd_status vxd_json_fail(const struct vxd_json *json, const char *path,
                              const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Returns RESOURCE_EXHAUSTED. */
enum vxd_status vxd_json_no_memory(const struct vxd_json *json);

/* Whether jansson lacked memory. It does not always say so: an empty text means it, too. */
bool vxd_json_is_memory(const json_error_t *error);

/* Returns "an object", "a number", ... */
const char *vxd_json_kind(const json_t *value);

/* "a must be WANTED, not KIND" */
enum vxd_status vxd_json_fail_type(const struct vxd_json *json, const char *path,
                                   const char *expected, const json_t *value);

/* Writes path + "." + name, or the name where the path is empty; it is cut where it is
 * too long. */
void vxd_json_join(char out[VXD_JSON_PATH_BYTES], const char *path, const char *name);

/* Reads every member of an object by its key's function. */
enum vxd_status vxd_json_object(const struct vxd_json *json, const char *path,
                                const json_t *value, const struct vxd_json_key *keys,
                                size_t n_keys, void *to);

enum vxd_status vxd_json_bool(const struct vxd_json *json, const char *path,
                              const json_t *value, bool *out);
enum vxd_status vxd_json_int(const struct vxd_json *json, const char *path,
                             const json_t *value, int64_t low, int64_t high, int *out);
/* Reads any finite number low <= x <= high. */
enum vxd_status vxd_json_number(const struct vxd_json *json, const char *path,
                                const json_t *value, double low, double high,
                                double *out);
/* Reads a string of 1 to n_bytes - 1 bytes. */
enum vxd_status vxd_json_text(const struct vxd_json *json, const char *path,
                              const json_t *value, char *out, size_t n_bytes);
/* Reads one of the names, which end with NULL, as its number. */
enum vxd_status vxd_json_choice(const struct vxd_json *json, const char *path,
                                const json_t *value, const char *const *names, int *out);
/* Reads an array of exactly n numbers. */
enum vxd_status vxd_json_numbers(const struct vxd_json *json, const char *path,
                                 const json_t *value, size_t n, double low, double high,
                                 double *out);
/* Reads an array of three whole numbers, or one number that is used three times. */
enum vxd_status vxd_json_ints3(const struct vxd_json *json, const char *path,
                               const json_t *value, int low, int high, int out[3]);

#endif
