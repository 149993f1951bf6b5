// SPDX-License-Identifier: Apache-2.0
/* voxelctl map insert, find, erase, update. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "client/voxelctl/generated/map_args.h"

/* find prints at most so many rows; --out takes more. */
enum {
    MAX_PRINTED = 100,
    MAX_OUT = CTL_MAX_LISTED + 3
};

/* The keys and values of a command, with the files they lie in. */
struct input {
    struct ctl_array keys;
    struct ctl_array files[CTL_MAX_LISTED];
    char names[CTL_MAX_LISTED][64];
    struct voxeld_array values[CTL_MAX_LISTED];
    size_t n_values;
};

static void input_free(struct input *in)
{
    ctl_array_clear(&in->keys);
    for (size_t i = 0; i < CTL_MAX_LISTED; i++) {
        ctl_array_clear(&in->files[i]);
    }
    free(in);
}

/* Returns the type of a map's array, in which to read the numbers of a text; any type
 * if there is no such array, which the server then reports. */
static enum voxeld_dtype type_of(const struct voxeld_maps *maps, const char *name)
{
    const struct voxeld_map_info *map = &maps->maps[0];

    for (size_t i = 0; i < map->n_arrays; i++) {
        if (strcmp(map->arrays[i].name, name) == 0) {
            return map->arrays[i].dtype;
        }
    }
    return VOXELD_FLOAT64;
}

/* Reads one ARRAY=FILE. */
static int read_values(const struct voxeld_maps *maps, const char *text, struct input *in)
{
    size_t i = in->n_values;
    size_t n_name = strcspn(text, "=");

    if (n_name >= sizeof in->names[i]) {
        return ctl_usage("map", "--values %s: a name of over 63 bytes", text);
    }
    memcpy(in->names[i], text, n_name);
    if (ctl_array_read(text + n_name + 1, type_of(maps, in->names[i]), &in->files[i]) !=
        CTL_OK) {
        return CTL_FAILED;
    }
    in->values[i] = ctl_array_view(&in->files[i], in->names[i]);
    in->n_values++;
    return CTL_OK;
}

static int read_all(struct voxeld_client *client, const struct ctl_map_args *args,
                    struct input *in)
{
    struct voxeld_maps *maps = NULL;
    struct voxeld_error error;
    int result = CTL_OK;

    if (args->n_words > 1) {
        result = ctl_array_read(args->words[1], VOXELD_INT64, &in->keys);
    }
    if (result == CTL_OK && args->values.n > 0 &&
        voxeld_map_get(client, NULL, args->words[0], &maps, &error) != VOXELD_OK) {
        result = ctl_failed(args->words[0], &error);
    }
    for (size_t i = 0; i < args->values.n && result == CTL_OK; i++) {
        result = read_values(maps, args->values.texts[i], in);
    }
    voxeld_maps_free(maps);
    return result;
}

/* Reads the command's keys and values; NULL, and *result, after a message. */
static struct input *input_read(struct voxeld_client *client,
                                const struct ctl_map_args *args, int *result)
{
    struct input *in = calloc(1, sizeof *in);

    if (in == NULL) {
        (void)ctl_error("no memory");
        *result = CTL_FAILED;
        return NULL;
    }
    *result = read_all(client, args, in);
    if (*result != CTL_OK) {
        input_free(in);
        return NULL;
    }
    return in;
}

int ctl_map_check_out(const struct ctl_map_args *args)
{
    if (args->out != NULL && !ctl_has_ending(args->out, ".npy") &&
        !ctl_has_ending(args->out, ".npz")) {
        return ctl_usage("map", "--out %s: a name ending in .npy or .npz", args->out);
    }
    return CTL_OK;
}

int ctl_map_insert(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_map_args *args)
{
    int result = CTL_OK;
    struct input *in = input_read(client, args, &result);
    struct voxeld_map_insert_request request = {.counts_only = args->out == NULL};
    struct voxeld_map_result *r = NULL;
    struct voxeld_error error;
    struct voxeld_array out[2];
    char text[3][32];

    if (in == NULL) {
        return result;
    }
    ctl_map_insert_request(args, &request);
    request.keys = ctl_array_view(&in->keys, NULL);
    request.values = in->values;
    request.n_values = in->n_values;
    if (voxeld_map_insert(client, &request, &r, &error) != VOXELD_OK) {
        input_free(in);
        return ctl_failed(request.map, &error);
    }
    input_free(in);
    if (args->out != NULL) {
        out[0] = (struct voxeld_array){"indices", VOXELD_INT32, r->indices, r->n, 1};
        out[1] = (struct voxeld_array){"is_new", VOXELD_UINT8, r->is_new, r->n, 1};
        result = ctl_write_arrays(args->out, out, 2);
    }
    if (result == CTL_OK && globals->json) {
        ctl_map_insert_json(r);
    } else if (result == CTL_OK) {
        (void)printf("%s keys, %s new; %s has %s entries\n", ctl_thousands(r->n, text[0]),
                     ctl_thousands(r->n_new, text[1]), request.map,
                     ctl_thousands(r->n_entries, text[2]));
    }
    voxeld_map_result_free(r);
    return result == CTL_OK ? ctl_flush() : result;
}

/* One element as it is read back by JSON's parsers and ours. */
static void print_element(const struct voxeld_array *array, size_t i)
{
    const size_t n_bytes = vxd_dtype_bytes((enum vxd_dtype)array->dtype);
    const uint8_t *at = (const uint8_t *)array->data + i * n_bytes;
    uint64_t bits = 0;
    uint64_t sign;
    int64_t number;
    float single;
    double value;

    memcpy(&bits, at, n_bytes);
    switch (array->dtype) {
    case VOXELD_FLOAT32:
        memcpy(&single, at, sizeof single);
        ctl_json_number(stdout, (double)single);
        return;
    case VOXELD_FLOAT64:
        memcpy(&value, at, sizeof value);
        ctl_json_number(stdout, value);
        return;
    case VOXELD_FLOAT16:
    case VOXELD_BFLOAT16:
        (void)printf("\"0x%04" PRIx64 "\"", bits);
        return;
    case VOXELD_INT8:
    case VOXELD_INT16:
    case VOXELD_INT32:
    case VOXELD_INT64:
        sign = UINT64_C(1) << (8 * n_bytes - 1);
        number = (int64_t)((bits ^ sign) - sign);
        (void)printf("%" PRId64, number);
        return;
    default:
        (void)printf("%" PRIu64, bits);
        return;
    }
}

/* Prints the k-th row, "[1, 2, 3]", or "7" of arrays of one element. */
static void print_row(const struct voxeld_array *array, size_t k)
{
    size_t n = array->n_elements > 0 ? array->n_elements : 1;

    (void)fputs(n > 1 ? "[" : "", stdout);
    for (size_t i = 0; i < n; i++) {
        (void)fputs(i > 0 ? ", " : "", stdout);
        print_element(array, k * n + i);
    }
    (void)fputs(n > 1 ? "]" : "", stdout);
}

static void print_entry_json(const struct voxeld_map_result *r,
                             const struct voxeld_array *keys,
                             const struct voxeld_array *neighbours, size_t k)
{
    (void)fputs(k > 0 ? ", {\"key\": " : "{\"key\": ", stdout);
    print_row(keys, k);
    (void)printf(", \"index\": %" PRId32, r->indices[k]);
    for (size_t i = 0; i < r->n_values; i++) {
        (void)fputs(", ", stdout);
        ctl_json_string(stdout, r->values[i].name);
        (void)fputs(": ", stdout);
        print_row(&r->values[i], k);
    }
    if (neighbours->data != NULL) {
        (void)fputs(", \"neighbours\": ", stdout);
        print_row(neighbours, k);
    }
    (void)fputc('}', stdout);
}

static void print_entry_text(const struct voxeld_map_result *r,
                             const struct voxeld_array *keys,
                             const struct voxeld_array *neighbours, size_t k)
{
    print_row(keys, k);
    if (r->found[k] == 0) {
        (void)fputs(" is not there", stdout);
    } else {
        (void)printf(" is entry %" PRId32, r->indices[k]);
        for (size_t i = 0; i < r->n_values; i++) {
            (void)printf(", %s ", r->values[i].name);
            print_row(&r->values[i], k);
        }
    }
    if (neighbours->data != NULL) {
        (void)fputs(", neighbours ", stdout);
        print_row(neighbours, k);
    }
    (void)fputc('\n', stdout);
}

static void print_found(const struct ctl_globals *globals,
                        const struct voxeld_map_result *r,
                        const struct voxeld_array *keys, const char *out)
{
    const struct voxeld_array neighbours = {"neighbours", VOXELD_INT32, r->neighbours,
                                            r->n, r->n_neighbours};
    size_t n = out != NULL ? 0 : r->n < MAX_PRINTED ? r->n : MAX_PRINTED;
    char text[2][32];

    if (globals->json) {
        (void)fputc('{', stdout);
        ctl_json_member_count(stdout, true, "n", r->n);
        ctl_json_member_count(stdout, false, "n_found", r->n_found);
        ctl_json_member_count(stdout, false, "erase_epoch", r->erase_epoch);
        (void)fputs(", \"entries\": [", stdout);
    }
    for (size_t k = 0; k < n; k++) {
        if (globals->json) {
            print_entry_json(r, keys, &neighbours, k);
        } else {
            print_entry_text(r, keys, &neighbours, k);
        }
    }
    if (globals->json) {
        (void)fputs("]}\n", stdout);
    } else {
        (void)printf("%s of %s keys are there%s\n", ctl_thousands(r->n_found, text[0]),
                     ctl_thousands(r->n, text[1]),
                     out == NULL && n < r->n ? "; --out FILE.npz takes them all" : "");
    }
}

/* Prints indices, found, neighbours if asked for, and the value arrays. */
static int write_found(const char *path, const struct voxeld_map_result *r)
{
    struct voxeld_array out[MAX_OUT] = {
        {"indices", VOXELD_INT32, r->indices, r->n, 1},
        {"found", VOXELD_UINT8, r->found, r->n, 1},
    };
    size_t n = 2;

    if (r->neighbours != NULL) {
        out[n++] = (struct voxeld_array){"neighbours", VOXELD_INT32, r->neighbours, r->n,
                                         r->n_neighbours};
    }
    for (size_t i = 0; i < r->n_values && n < MAX_OUT; i++) {
        out[n++] = r->values[i];
    }
    return ctl_write_arrays(path, out, n);
}

int ctl_map_find(struct voxeld_client *client, const struct ctl_globals *globals,
                 const struct ctl_map_args *args)
{
    static const char *const all[] = {"*"};
    int result = CTL_OK;
    struct input *in = input_read(client, args, &result);
    struct voxeld_map_find_request request = {0};
    struct voxeld_map_result *r = NULL;
    struct voxeld_error error;

    if (in == NULL) {
        return result;
    }
    ctl_map_find_request(args, &request);
    if (request.n_arrays == 0) {
        request.arrays = all;
        request.n_arrays = 1;
    }
    request.keys = ctl_array_view(&in->keys, NULL);
    if (voxeld_map_find(client, &request, &r, &error) != VOXELD_OK) {
        result = ctl_failed(request.map, &error);
    } else {
        result = args->out != NULL ? write_found(args->out, r) : CTL_OK;
        if (result == CTL_OK) {
            print_found(globals, r, &request.keys, args->out);
            result = ctl_flush();
        }
    }
    voxeld_map_result_free(r);
    input_free(in);
    return result;
}

int ctl_map_check_erase(const struct ctl_map_args *args)
{
    return ctl_map_has(args, CTL_MAP_ALL) == (args->n_words > 1)
               ? ctl_usage("map erase", "either KEYS or --all")
               : CTL_OK;
}

int ctl_map_erase(struct voxeld_client *client, const struct ctl_globals *globals,
                  const struct ctl_map_args *args)
{
    struct voxeld_map_erase_request request = {.counts_only = true};
    struct input *in;
    struct voxeld_map_result *r = NULL;
    struct voxeld_error error;
    char text[2][32];
    int result = CTL_OK;

    in = input_read(client, args, &result);
    if (in == NULL) {
        return result;
    }
    ctl_map_erase_request(args, &request);
    if (!request.all) {
        request.keys = ctl_array_view(&in->keys, NULL);
    }
    if (voxeld_map_erase(client, &request, &r, &error) != VOXELD_OK) {
        input_free(in);
        return ctl_failed(request.map, &error);
    }
    input_free(in);
    if (globals->json) {
        ctl_map_erase_json(r);
    } else {
        (void)printf("%s entries erased; %s has %s\n",
                     ctl_thousands(r->n_erased, text[0]), request.map,
                     ctl_thousands(r->n_entries, text[1]));
    }
    voxeld_map_result_free(r);
    return ctl_flush();
}

int ctl_map_update(struct voxeld_client *client, const struct ctl_globals *globals,
                   const struct ctl_map_args *args)
{
    int result = CTL_OK;
    struct input *in;
    struct voxeld_map_update_request request = {.counts_only = true};
    struct voxeld_map_result *r = NULL;
    struct voxeld_error error;
    char text[3][32];

    in = input_read(client, args, &result);
    if (in == NULL) {
        return result;
    }
    ctl_map_update_request(args, &request);
    request.keys = ctl_array_view(&in->keys, NULL);
    request.values = in->values;
    request.n_values = in->n_values;
    if (voxeld_map_update(client, &request, &r, &error) != VOXELD_OK) {
        input_free(in);
        return ctl_failed(request.map, &error);
    }
    input_free(in);
    if (globals->json) {
        ctl_map_update_json(r);
    } else {
        (void)printf("%s of %s keys updated, %s of them new\n",
                     ctl_thousands(r->n_updated, text[0]), ctl_thousands(r->n, text[1]),
                     ctl_thousands(r->n_new, text[2]));
    }
    voxeld_map_result_free(r);
    return ctl_flush();
}
