// SPDX-License-Identifier: Apache-2.0
/* vxd_hashmap_update as its contract describes it, an element at a time. Numbers are
 * converted through double (exact for float32 and shorter types) and 128-bit integers;
 * short floats are encoded and decoded by arithmetic, not by bit operations. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/hash/hash_model.h"
#include "tests/support/gpu/gpu_helpers.h"

__extension__ typedef __int128 wide;

enum {
    BLOCK = 1024
};

/* The short floats. */
struct short_form {
    int n_mantissa; /* mantissa bits that are stored */
    int least;      /* exponent of the smallest normal number */
    uint16_t infinity;
};

static const struct short_form half = {10, -14, 0x7c00};
static const struct short_form brain = {7, -126, 0x7f80};

static bool is_float(enum vxd_dtype dtype)
{
    return dtype == VXD_FLOAT16 || dtype == VXD_BFLOAT16 || dtype == VXD_FLOAT32 ||
           dtype == VXD_FLOAT64;
}

static double decode_short(const struct short_form *form, uint16_t bits)
{
    int exponent = (bits & 0x7fff) >> form->n_mantissa;
    int mantissa = bits & ((1 << form->n_mantissa) - 1);
    double value;

    if (exponent == form->infinity >> form->n_mantissa) {
        value = mantissa != 0 ? (double)NAN : (double)INFINITY;
    } else if (exponent == 0) {
        value = ldexp(mantissa, form->least - form->n_mantissa);
    } else {
        value = ldexp(mantissa + (1 << form->n_mantissa),
                      exponent - 1 + form->least - form->n_mantissa);
    }
    return (bits & 0x8000) != 0 ? -value : value;
}

static uint16_t encode_short(const struct short_form *form, double value)
{
    uint16_t sign = signbit(value) ? 0x8000 : 0;
    long implicit = 1L << form->n_mantissa;
    long bits;
    long units;
    int exponent;

    if (isnan(value)) {
        return (uint16_t)(form->infinity | 1 << (form->n_mantissa - 1));
    }
    if (isinf(value)) {
        return (uint16_t)(sign | form->infinity);
    }
    exponent = value != 0.0 ? ilogb(value) : form->least;
    exponent = exponent < form->least ? form->least : exponent;
    /* nearbyint rounds to nearest, ties to even. */
    units = (long)nearbyint(ldexp(fabs(value), form->n_mantissa - exponent));
    bits = units < implicit
               ? units
               : (long)(exponent - form->least + 1) * implicit + units - implicit;
    return (uint16_t)(sign | (bits > form->infinity ? form->infinity : bits));
}

static double load_float(enum vxd_dtype dtype, const void *at)
{
    uint16_t bits;
    float single;
    double value;

    switch (dtype) {
    case VXD_FLOAT16:
    case VXD_BFLOAT16:
        memcpy(&bits, at, sizeof bits);
        return decode_short(dtype == VXD_FLOAT16 ? &half : &brain, bits);
    case VXD_FLOAT32:
        memcpy(&single, at, sizeof single);
        return single;
    default:
        memcpy(&value, at, sizeof value);
        return value;
    }
}

static void store_float(enum vxd_dtype dtype, void *at, double value)
{
    static const uint32_t quiet_single = 0x7fc00000;
    static const uint64_t quiet = 0x7ff8000000000000;
    float single = (float)value;
    uint16_t bits;

    switch (dtype) {
    case VXD_FLOAT16:
    case VXD_BFLOAT16:
        bits = encode_short(dtype == VXD_FLOAT16 ? &half : &brain, value);
        memcpy(at, &bits, sizeof bits);
        break;
    case VXD_FLOAT32:
        memcpy(at, isnan(value) ? (const void *)&quiet_single : &single, sizeof single);
        break;
    default:
        memcpy(at, isnan(value) ? (const void *)&quiet : &value, sizeof value);
        break;
    }
}

static bool is_signed(enum vxd_dtype dtype)
{
    return dtype == VXD_INT8 || dtype == VXD_INT16 || dtype == VXD_INT32 ||
           dtype == VXD_INT64;
}

static wide load_int(enum vxd_dtype dtype, const void *at)
{
    int n_bits = 8 * (int)vxd_dtype_bytes(dtype);
    uint64_t bits = 0;
    wide value;

    memcpy(&bits, at, vxd_dtype_bytes(dtype)); /* little-endian */
    value = bits;
    if (is_signed(dtype) && (bits >> (n_bits - 1) & 1) != 0) {
        value -= (wide)1 << n_bits;
    }
    return value;
}

static void store_int(enum vxd_dtype dtype, void *at, wide value)
{
    int n_bits = 8 * (int)vxd_dtype_bytes(dtype);
    wide most = ((wide)1 << (is_signed(dtype) ? n_bits - 1 : n_bits)) - 1;
    wide least = is_signed(dtype) ? -most - 1 : 0;
    uint64_t bits = (uint64_t)(value < least ? least : value > most ? most : value);

    memcpy(at, &bits, vxd_dtype_bytes(dtype));
}

/* Adds with one rounding, to the precision in which the array's dtype is summed. */
static double add(enum vxd_dtype array_dtype, double a, double b)
{
    return array_dtype == VXD_FLOAT64 ? a + b : (double)((float)a + (float)b);
}

/* Combines element e of the rows in positions[0 .. n) with the element at `at`. */
struct column {
    const unsigned char *rows;
    size_t row_bytes; /* of `rows` */
    size_t offset;    /* of the element in its row */
    const size_t *positions;
    size_t n;
    enum vxd_dtype from;
    enum vxd_dtype to;
    void *at;
};

static const void *row_at(const struct column *column, size_t i)
{
    return column->rows + column->positions[i] * column->row_bytes + column->offset;
}

static void copy_element(const struct column *column, const void *from)
{
    if (column->from == column->to) {
        memcpy(column->at, from, vxd_dtype_bytes(column->to));
    } else if (is_float(column->to)) {
        store_float(column->to, column->at, load_float(column->from, from));
    } else {
        store_int(column->to, column->at, load_int(column->from, from));
    }
}

static void add_column(const struct column *column)
{
    double total = 0.0;
    wide sum = 0;

    if (!is_float(column->to)) {
        for (size_t i = 0; i < column->n; i++) {
            sum += load_int(column->from, row_at(column, i));
        }
        store_int(column->to, column->at, sum + load_int(column->to, column->at));
        return;
    }
    for (size_t block = 0; block < column->n; block += BLOCK) {
        size_t end = block + BLOCK < column->n ? block + BLOCK : column->n;
        double block_sum = load_float(column->from, row_at(column, block));

        for (size_t i = block + 1; i < end; i++) {
            block_sum =
                add(column->to, block_sum, load_float(column->from, row_at(column, i)));
        }
        total = block == 0 ? block_sum : add(column->to, total, block_sum);
    }
    store_float(column->to, column->at,
                add(column->to, load_float(column->to, column->at), total));
}

static bool replaces(const struct column *column, const void *row, bool is_min)
{
    if (is_float(column->to)) {
        double value = load_float(column->from, row);
        double old = load_float(column->to, column->at);

        return is_min ? value < old : value > old;
    }
    return is_min ? load_int(column->from, row) < load_int(column->to, column->at)
                  : load_int(column->from, row) > load_int(column->to, column->at);
}

static void combine_column(const struct column *column, enum vxd_hash_combine combine)
{
    if (combine == VXD_COMBINE_ADD) {
        add_column(column);
        return;
    }
    for (size_t i = 0; i < column->n; i++) {
        const void *row = row_at(column, i);

        if (combine == VXD_COMBINE_SET ||
            replaces(column, row, combine == VXD_COMBINE_MIN)) {
            copy_element(column, row);
        }
    }
}

static bool names_entry(const struct hash_model *model, int32_t number)
{
    return number >= 0 && (size_t)number < model->capacity && model->lives[number];
}

void hash_model_update(struct hash_model *model,
                       const struct vxd_hashmap_update_args *args)
{
    const struct vxd_hashmap_array *array = &model->spec.values[args->array];
    size_t *positions = gpu_alloc(args->n * sizeof *positions);
    bool *is_done = gpu_alloc(model->capacity * sizeof *is_done);
    struct column column = {.rows = args->rows,
                            .row_bytes = array->n_elements * vxd_dtype_bytes(args->dtype),
                            .positions = positions,
                            .from = args->dtype,
                            .to = array->dtype};

    memset(is_done, 0, model->capacity * sizeof *is_done);
    for (size_t i = 0; i < args->n; i++) {
        int32_t number = args->indices[i];
        bool is_entry = names_entry(model, number);

        if (args->updated != NULL) {
            args->updated[i] = is_entry;
        }
        if (!is_entry || is_done[number]) {
            continue;
        }
        is_done[number] = true;
        column.n = 0;
        for (size_t k = i; k < args->n; k++) {
            if (args->indices[k] == number) {
                positions[column.n++] = k;
            }
        }
        for (uint32_t e = 0; e < array->n_elements; e++) {
            column.offset = e * vxd_dtype_bytes(args->dtype);
            column.at = model->values[args->array] +
                        (size_t)number * model->row_bytes[args->array] +
                        e * vxd_dtype_bytes(array->dtype);
            combine_column(&column, args->combine);
        }
    }
    free(is_done);
    free(positions);
}
