// SPDX-License-Identifier: Apache-2.0
/* Reads operations from a file, in the schema's JSON: {"operations": [{"ball":
 * {"centre": {"x": 1, "y": 2, "z": 0}, "radius": 0.5}, "action": "SCENE_FILL",
 * "material": 3}]}. This file checks which members there are; the server checks what
 * they mean. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "proto/base/json_file.h"
#include "proto/base/number.h"
#include "client/voxelctl/scene/scene_commands.h"

enum member_kind {
    MEMBER_NUMBER,
    MEMBER_COUNT, /* uint32_t */
    MEMBER_TRUTH,
    MEMBER_VEC3,
    MEMBER_MATRIX, /* nine int32_t */
    MEMBER_ARRAY,  /* struct voxeld_array */
    MEMBER_ACTION,
    MEMBER_PIN
};

/* A member of a message, and where its value goes. */
struct member {
    const char *name; /* as in the schema; its lowerCamelCase is accepted, too */
    enum member_kind kind;
    size_t at;
};

/* The last entry of a table has the name NULL. */
static const struct member box_members[] = {
    {"low", MEMBER_VEC3, offsetof(struct voxeld_scene_box, low)},
    {"high", MEMBER_VEC3, offsetof(struct voxeld_scene_box, high)},
    {NULL, MEMBER_NUMBER, 0}};
static const struct member ball_members[] = {
    {"centre", MEMBER_VEC3, offsetof(struct voxeld_scene_ball, centre)},
    {"radius", MEMBER_NUMBER, offsetof(struct voxeld_scene_ball, radius)},
    {"noise", MEMBER_NUMBER, offsetof(struct voxeld_scene_ball, noise)},
    {"noise_cell_bits", MEMBER_COUNT,
     offsetof(struct voxeld_scene_ball, noise_cell_bits)},
    {"noise_seed", MEMBER_COUNT, offsetof(struct voxeld_scene_ball, noise_seed)},
    {NULL, MEMBER_NUMBER, 0}};
static const struct member capsule_members[] = {
    {"a", MEMBER_VEC3, offsetof(struct voxeld_scene_capsule, a)},
    {"b", MEMBER_VEC3, offsetof(struct voxeld_scene_capsule, b)},
    {"radius", MEMBER_NUMBER, offsetof(struct voxeld_scene_capsule, radius)},
    {NULL, MEMBER_NUMBER, 0}};
static const struct member half_space_members[] = {
    {"normal", MEMBER_VEC3, offsetof(struct voxeld_scene_half_space, normal)},
    {"offset", MEMBER_NUMBER, offsetof(struct voxeld_scene_half_space, offset)},
    {NULL, MEMBER_NUMBER, 0}};
static const struct member points_members[] = {
    {"points", MEMBER_ARRAY, offsetof(struct voxeld_scene_points, points)},
    {"materials", MEMBER_ARRAY, offsetof(struct voxeld_scene_points, materials)},
    {NULL, MEMBER_NUMBER, 0}};
static const struct member heightfield_members[] = {
    {"heights", MEMBER_ARRAY, offsetof(struct voxeld_scene_heightfield, heights)},
    {"x", MEMBER_NUMBER, offsetof(struct voxeld_scene_heightfield, x)},
    {"y", MEMBER_NUMBER, offsetof(struct voxeld_scene_heightfield, y)},
    {"cell", MEMBER_NUMBER, offsetof(struct voxeld_scene_heightfield, cell)},
    {"low_z", MEMBER_NUMBER, offsetof(struct voxeld_scene_heightfield, low_z)},
    {NULL, MEMBER_NUMBER, 0}};
static const struct member copy_members[] = {
    {"from", MEMBER_VEC3, offsetof(struct voxeld_scene_copy, from)},
    {"matrix", MEMBER_MATRIX, offsetof(struct voxeld_scene_copy, matrix)},
    {"copy_empty", MEMBER_TRUTH, offsetof(struct voxeld_scene_copy, copy_empty)},
    {NULL, MEMBER_NUMBER, 0}};
static const struct member operation_members[] = {
    {"action", MEMBER_ACTION, offsetof(struct voxeld_scene_operation, action)},
    {"material", MEMBER_COUNT, offsetof(struct voxeld_scene_operation, material)},
    {"from_material", MEMBER_COUNT,
     offsetof(struct voxeld_scene_operation, from_material)},
    {"threshold", MEMBER_COUNT, offsetof(struct voxeld_scene_operation, threshold)},
    {"pin", MEMBER_PIN, offsetof(struct voxeld_scene_operation, pin)},
    {NULL, MEMBER_NUMBER, 0}};

static const struct {
    const char *name;
    const struct member *members;
} shapes[] = {{NULL, NULL},
              {"box", box_members},
              {"ball", ball_members},
              {"capsule", capsule_members},
              {"half_space", half_space_members},
              {"points", points_members},
              {"heightfield", heightfield_members}};

/* The memory of an array's elements. */
struct block {
    struct block *next;
    max_align_t data[];
};

struct ctl_scene_json {
    struct vxd_json_file json;
    struct block *blocks;
    const char *path;
    size_t operation; /* that is being read */
};

static bool wrong(const struct ctl_scene_json *j, const char *name, const char *right)
{
    (void)ctl_error("%s: operations[%zu]: %s: %s", j->path, j->operation, name, right);
    return false;
}

static const struct vxd_json_node *child(const struct ctl_scene_json *j,
                                         const struct vxd_json_node *parent)
{
    return parent->n_children > 0 ? &j->json.nodes[parent->first] : NULL;
}

static const struct vxd_json_node *sibling(const struct ctl_scene_json *j,
                                           const struct vxd_json_node *node)
{
    return node->next > 0 ? &j->json.nodes[node->next] : NULL;
}

/* Whether a JSON key is the member's name: low_z is "low_z" and "lowZ". */
static bool is_named(const char *key, const char *name)
{
    while (*name != '\0') {
        if (*name == '_' && *key != '_') {
            name++;
            if (*key != *name - ('a' - 'A')) {
                return false;
            }
        } else if (*key != *name) {
            return false;
        }
        key++;
        name++;
    }
    return *key == '\0';
}

/* Reads numbers, and strings such as "NaN" and 64-bit integers, as the schema's JSON
 * has them. */
static bool number_of(const struct vxd_json_node *node, double *out)
{
    return (node->kind == VXD_JSON_NUMBER || node->kind == VXD_JSON_STRING) &&
           vxd_number_double(node->text, node->n_text, out);
}

/* Reads a message {"x": 1, "y": 2, "z": 3}; missing members are 0. */
static bool read_vec3(const struct ctl_scene_json *j, const struct vxd_json_node *node,
                      double *out)
{
    if (node->kind != VXD_JSON_OBJECT) {
        return false;
    }
    for (node = child(j, node); node != NULL; node = sibling(j, node)) {
        bool is_axis = node->key[0] >= 'x' && node->key[0] <= 'z' && node->key[1] == '\0';

        if (!is_axis || !number_of(node, &out[node->key[0] - 'x'])) {
            return false;
        }
    }
    return true;
}

static bool read_matrix(const struct ctl_scene_json *j, const struct vxd_json_node *node,
                        int32_t *out)
{
    double value;

    if (node->kind != VXD_JSON_ARRAY ||
        (node->n_children != 9 && node->n_children != 0)) {
        return false;
    }
    for (node = child(j, node); node != NULL; node = sibling(j, node)) {
        if (!number_of(node, &value) || (value != 0 && value != 1 && value != -1)) {
            return false;
        }
        *out++ = (int32_t)value;
    }
    return true;
}

static bool read_pin(const struct vxd_json_node *node, enum voxeld_scene_pin *out)
{
    static const char *const names[] = {"SCENE_PIN_UNCHANGED", "SCENE_PINNED",
                                        "SCENE_UNPINNED"};

    for (size_t i = 0; node->kind == VXD_JSON_STRING && i < 3; i++) {
        if (strcmp(node->text, names[i]) == 0) {
            *out = (enum voxeld_scene_pin)i;
            return true;
        }
    }
    return false;
}

static bool read_action(const struct vxd_json_node *node, enum voxeld_scene_action *out)
{
    static const char *const names[] = {"FILL",  "ERASE",  "SET_FREE", "PAINT", "REPLACE",
                                        "ERODE", "DILATE", "COPY",     "KEEP"};
    static const char prefix[] = "SCENE_";

    for (size_t i = 0; node->kind == VXD_JSON_STRING && i < 9; i++) {
        if (strncmp(node->text, prefix, sizeof prefix - 1) == 0 &&
            strcmp(node->text + sizeof prefix - 1, names[i]) == 0) {
            *out = (enum voxeld_scene_action)i;
            return true;
        }
    }
    return false;
}

static enum voxeld_dtype dtype_of(const struct vxd_json_node *node)
{
    for (int i = VOXELD_INT8; node->kind == VXD_JSON_STRING && i <= VOXELD_UINT64; i++) {
        if (strcasecmp(node->text, ctl_dtype_name((enum voxeld_dtype)i)) == 0) {
            return (enum voxeld_dtype)i;
        }
    }
    return VOXELD_DTYPE_UNSPECIFIED;
}

/* Reads one or two extents. */
static bool read_shape(const struct ctl_scene_json *j, const struct vxd_json_node *node,
                       struct voxeld_array *out)
{
    uint64_t extents[2] = {0, 1};
    size_t i = 0;

    if (node->kind != VXD_JSON_ARRAY || node->n_children < 1 || node->n_children > 2) {
        return false;
    }
    for (node = child(j, node); node != NULL; node = sibling(j, node)) {
        if ((node->kind != VXD_JSON_NUMBER && node->kind != VXD_JSON_STRING) ||
            !vxd_number_uint64(node->text, node->n_text, &extents[i]) ||
            extents[i] > SIZE_MAX) {
            return false;
        }
        i++;
    }
    out->n = (size_t)extents[0];
    out->n_elements = (size_t)extents[1];
    return true;
}

/* Reads the elements into memory that belongs to the file. */
static bool read_elements(struct ctl_scene_json *j, const struct vxd_json_node *values,
                          struct voxeld_array *out)
{
    const size_t n_bytes = vxd_dtype_bytes((enum vxd_dtype)out->dtype);
    const struct vxd_json_node *node;
    struct block *block;
    size_t n_all;
    uint8_t *to;

    if (!vxd_size_mul(out->n, out->n_elements, &n_all) || n_all != values->n_children ||
        !vxd_size_mul(n_all, n_bytes, &n_all)) {
        return wrong(j, "values", "as many as the shape says");
    }
    block = malloc(sizeof *block + n_all);
    if (block == NULL) {
        return wrong(j, "values", "no memory for them");
    }
    block->next = j->blocks;
    j->blocks = block;
    to = (uint8_t *)block->data;
    for (node = child(j, values); node != NULL; node = sibling(j, node)) {
        if ((node->kind != VXD_JSON_NUMBER && node->kind != VXD_JSON_STRING) ||
            !vxd_number_store(node->text, node->n_text, (enum vxd_dtype)out->dtype, to)) {
            return wrong(j, "values", "a number of the dtype is right");
        }
        to += n_bytes;
    }
    out->data = block->data;
    return true;
}

/* Reads a tensor that gives its elements as values. */
static bool read_array(struct ctl_scene_json *j, const char *name,
                       const struct vxd_json_node *node, struct voxeld_array *out)
{
    const struct vxd_json_node *values = NULL;
    bool has_shape = false;

    if (node->kind == VXD_JSON_OBJECT) {
        for (node = child(j, node); node != NULL; node = sibling(j, node)) {
            if (strcmp(node->key, "dtype") == 0) {
                out->dtype = dtype_of(node);
            } else if (strcmp(node->key, "shape") == 0) {
                has_shape = read_shape(j, node, out);
            } else if (strcmp(node->key, "values") == 0 && node->kind == VXD_JSON_ARRAY) {
                values = node;
            } else {
                return wrong(j, node->key, "an array has dtype, shape and values here");
            }
        }
    }
    if (values == NULL || !has_shape || out->dtype == VOXELD_DTYPE_UNSPECIFIED) {
        return wrong(j, name, "an array with dtype, shape and values is right");
    }
    return read_elements(j, values, out);
}

static bool read_member(struct ctl_scene_json *j, const struct member *member,
                        const struct vxd_json_node *node, void *into)
{
    void *to = (char *)into + member->at;
    double value;

    switch (member->kind) {
    case MEMBER_NUMBER:
        return number_of(node, to) || wrong(j, member->name, "a number is right");
    case MEMBER_COUNT:
        if (!number_of(node, &value) || !(value >= 0 && value <= UINT32_MAX) ||
            value != (double)(uint32_t)value) {
            return wrong(j, member->name, "a whole number of 32 bits is right");
        }
        *(uint32_t *)to = (uint32_t)value;
        return true;
    case MEMBER_TRUTH:
        *(bool *)to = node->kind == VXD_JSON_TRUE;
        return node->kind == VXD_JSON_TRUE || node->kind == VXD_JSON_FALSE ||
               wrong(j, member->name, "true or false is right");
    case MEMBER_VEC3:
        return read_vec3(j, node, to) ||
               wrong(j, member->name, "an object of x, y and z is right");
    case MEMBER_MATRIX:
        return read_matrix(j, node, to) || wrong(j, member->name, "nine of 0, 1 and -1");
    case MEMBER_ARRAY:
        return read_array(j, member->name, node, to);
    case MEMBER_PIN:
        return read_pin(node, to) ||
               wrong(j, member->name, "SCENE_PINNED or SCENE_UNPINNED is right");
    default:
        return read_action(node, to) ||
               wrong(j, member->name, "SCENE_FILL, SCENE_ERASE, ... are right");
    }
}

/* Finds the table's member of that name; NULL where there is none. */
static const struct member *find(const struct member *members, const char *key)
{
    while (members->name != NULL && !is_named(key, members->name)) {
        members++;
    }
    return members->name != NULL ? members : NULL;
}

static bool read_message(struct ctl_scene_json *j, const struct member *members,
                         const struct vxd_json_node *node, void *into)
{
    if (node->kind != VXD_JSON_OBJECT) {
        return wrong(j, node->key, "an object is right");
    }
    for (node = child(j, node); node != NULL; node = sibling(j, node)) {
        const struct member *member = find(members, node->key);

        if (member == NULL) {
            return wrong(j, node->key, "there is no such member");
        }
        if (!read_member(j, member, node, into)) {
            return false;
        }
    }
    return true;
}

static bool read_operation(struct ctl_scene_json *j, const struct vxd_json_node *node,
                           struct voxeld_scene_operation *out)
{
    if (node->kind != VXD_JSON_OBJECT) {
        return wrong(j, "it", "an object is right");
    }
    for (node = child(j, node); node != NULL; node = sibling(j, node)) {
        const struct member *member = find(operation_members, node->key);
        size_t shape = 1;

        while (shape < sizeof shapes / sizeof shapes[0] &&
               !is_named(node->key, shapes[shape].name)) {
            shape++;
        }
        if (member != NULL) {
            if (!read_member(j, member, node, out)) {
                return false;
            }
        } else if (strcmp(node->key, "copy") == 0) {
            if (!read_message(j, copy_members, node, &out->copy)) {
                return false;
            }
        } else if (shape == sizeof shapes / sizeof shapes[0]) {
            return wrong(j, node->key, "there is no such member");
        } else if (out->shape != VOXELD_SHAPE_NONE) {
            return wrong(j, node->key, "a second shape");
        } else {
            out->shape = (enum voxeld_scene_shape)shape;
            if (!read_message(j, shapes[shape].members, node, &out->in)) {
                return false;
            }
        }
    }
    return true;
}

/* Finds the list: the document itself, or its member "operations". The document may be
 * the body of a request, whose other members the command line gives. */
static const struct vxd_json_node *find_list(const struct ctl_scene_json *j)
{
    const struct vxd_json_node *node = &j->json.nodes[0];

    if (node->kind == VXD_JSON_OBJECT) {
        node = child(j, node);
        while (node != NULL && strcmp(node->key, "operations") != 0) {
            node = sibling(j, node);
        }
    }
    return node != NULL && node->kind == VXD_JSON_ARRAY ? node : NULL;
}

static int read_file(struct ctl_scene_json *j)
{
    uint8_t *bytes = NULL;
    size_t n_bytes = 0;
    struct vxd_err err = {0};
    enum vxd_status status;

    if (ctl_read_file(j->path, &bytes, &n_bytes) != CTL_OK) {
        return CTL_FAILED;
    }
    status = vxd_json_file_parse(bytes, n_bytes, &j->json, &err);
    free(bytes);
    if (status != VXD_OK) {
        (void)ctl_error("%s: %s", j->path, err.message);
        return CTL_FAILED;
    }
    return CTL_OK;
}

int ctl_scene_json_read(const char *path, struct voxeld_scene_operations *list,
                        struct ctl_scene_json **out)
{
    struct ctl_scene_json *j = calloc(1, sizeof *j);
    const struct vxd_json_node *node;

    *out = j;
    if (j == NULL) {
        (void)ctl_error("no memory");
        return CTL_FAILED;
    }
    j->path = path;
    if (read_file(j) != CTL_OK) {
        return CTL_FAILED;
    }
    node = find_list(j);
    if (node == NULL) {
        (void)ctl_error("%s: no list of operations", path);
        return CTL_FAILED;
    }
    for (node = child(j, node); node != NULL; node = sibling(j, node)) {
        struct voxeld_scene_operation *operation =
            voxeld_scene_add(list, VOXELD_SHAPE_NONE);

        if (operation == NULL) {
            (void)ctl_error("%s: no memory for its operations", path);
            return CTL_FAILED;
        }
        if (!read_operation(j, node, operation)) {
            return CTL_FAILED;
        }
        j->operation++;
    }
    return CTL_OK;
}

void ctl_scene_json_free(struct ctl_scene_json *json)
{
    if (json == NULL) {
        return;
    }
    while (json->blocks != NULL) {
        struct block *next = json->blocks->next;

        free(json->blocks);
        json->blocks = next;
    }
    vxd_json_file_clear(&json->json);
    free(json);
}
