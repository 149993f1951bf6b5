// SPDX-License-Identifier: Apache-2.0
/* Least significant digit first. Every pass counts the digits of each piece, turns the
 * counts into positions (digit major, then piece, which keeps the sort stable), and
 * moves the pairs there. Digits consist only of bits in which keys differ. Each pass
 * moves 24 bytes a pair, and a piece's 2048 counters stay in the first-level cache. */
#include <stdlib.h>
#include <string.h>

#include "gpu/core/core_cpu.h"

#define MAX_DIGIT_BITS 11
#define N_DIGITS ((size_t)1 << MAX_DIGIT_BITS)
#define MIN_PIECE_ITEMS ((size_t)8192)
#define MAX_PIECE_ITEMS ((size_t)1 << 18) /* a thread finishes one within some ms */

struct sort {
    const uint64_t *keys;
    const uint32_t *values;
    uint64_t *to_keys;
    uint32_t *to_values;
    size_t piece_items;
    int shift;
    uint32_t digit_mask;
    uint64_t *differing; /* a piece: bits in which some key differs from the first */
    uint32_t *counts;    /* a piece: N_DIGITS counters */
};

/* What vxd_queue_push copies. */
struct sort_args {
    uint64_t *keys;
    uint32_t *values;
    uint64_t *tmp_keys;
    uint32_t *tmp_values;
    size_t n;
    int begin_bit;
    int end_bit;
    void *scratch;
};

/* Two pieces a thread, so that one slow thread costs half a share. More where such
 * pieces would be so long that other loops wait for the threads. The number never
 * decreases as n grows. */
static size_t n_pieces_of(int n_threads, size_t n)
{
    size_t n_needed = 2 * (size_t)n_threads;
    size_t n_pieces = n / MIN_PIECE_ITEMS;

    if (n_threads == 1 || n_pieces == 0) {
        return 1;
    }
    if (n_needed < n / MAX_PIECE_ITEMS) {
        n_needed = n / MAX_PIECE_ITEMS;
    }
    return n_pieces < n_needed ? n_pieces : n_needed;
}

size_t vxd_sort_pairs_scratch_bytes_cpu(int n_threads, size_t n)
{
    return n_pieces_of(n_threads, n) * (sizeof(uint64_t) + N_DIGITS * sizeof(uint32_t)) +
           256;
}

static void find_differing(void *args, size_t begin, size_t end)
{
    const struct sort *sort = args;
    uint64_t first = sort->keys[0];
    uint64_t differing = 0;

    for (size_t i = begin; i < end; i++) {
        differing |= sort->keys[i] ^ first;
    }
    sort->differing[begin / sort->piece_items] = differing;
}

static void count_digits(void *args, size_t begin, size_t end)
{
    const struct sort *sort = args;
    uint32_t *counts = sort->counts + begin / sort->piece_items * N_DIGITS;

    memset(counts, 0, ((size_t)sort->digit_mask + 1) * sizeof *counts);
    for (size_t i = begin; i < end; i++) {
        counts[(uint32_t)(sort->keys[i] >> sort->shift) & sort->digit_mask]++;
    }
}

static void move_pairs(void *args, size_t begin, size_t end)
{
    const struct sort *sort = args;
    uint32_t *positions = sort->counts + begin / sort->piece_items * N_DIGITS;

    for (size_t i = begin; i < end; i++) {
        uint64_t key = sort->keys[i];
        uint32_t to = positions[(uint32_t)(key >> sort->shift) & sort->digit_mask]++;

        sort->to_keys[to] = key;
        sort->to_values[to] = sort->values[i];
    }
}

static void counts_to_positions(struct sort *sort, size_t n_pieces)
{
    uint32_t position = 0;

    for (size_t digit = 0; digit <= sort->digit_mask; digit++) {
        for (size_t piece = 0; piece < n_pieces; piece++) {
            uint32_t *count = &sort->counts[piece * N_DIGITS + digit];
            uint32_t n = *count;

            *count = position;
            position += n;
        }
    }
}

bool vxd_sort_pairs_run(struct vxd_pool *pool, uint64_t *keys, uint32_t *values,
                        uint64_t *tmp_keys, uint32_t *tmp_values, size_t n, int begin_bit,
                        int end_bit, void *scratch)
{
    size_t n_pieces = n_pieces_of(vxd_pool_n_threads(pool), n);
    struct sort sort = {.keys = keys, .values = values, .to_keys = tmp_keys};
    uint64_t differing = 0;
    int low = begin_bit;
    int high = end_bit;
    int digit_bits;
    bool in_tmp = false;

    if (n < 2) {
        return false;
    }
    sort.to_values = tmp_values;
    sort.piece_items = (n + n_pieces - 1) / n_pieces;
    n_pieces = (n + sort.piece_items - 1) / sort.piece_items;
    sort.differing = scratch;
    sort.counts = (uint32_t *)(sort.differing + n_pieces);
    vxd_parallel_for(pool, n, sort.piece_items, find_differing, &sort);
    for (size_t i = 0; i < n_pieces; i++) {
        differing |= sort.differing[i];
    }
    while (low < high && (differing >> low & 1) == 0) {
        low++;
    }
    while (high > low && (differing >> (high - 1) & 1) == 0) {
        high--;
    }
    if (low == high) {
        return false;
    }
    /* As few passes as digits of eleven bits allow, all of equal width. */
    digit_bits = (high - low + MAX_DIGIT_BITS - 1) / MAX_DIGIT_BITS;
    digit_bits = (high - low + digit_bits - 1) / digit_bits;
    while (low < high) {
        int bits = high - low < digit_bits ? high - low : digit_bits;

        sort.shift = low;
        sort.digit_mask = ((uint32_t)1 << bits) - 1;
        low += bits;
        if ((differing >> sort.shift & sort.digit_mask) == 0) {
            continue;
        }
        vxd_parallel_for(pool, n, sort.piece_items, count_digits, &sort);
        counts_to_positions(&sort, n_pieces);
        vxd_parallel_for(pool, n, sort.piece_items, move_pairs, &sort);
        in_tmp = !in_tmp;
        sort.keys = in_tmp ? tmp_keys : keys;
        sort.values = in_tmp ? tmp_values : values;
        sort.to_keys = in_tmp ? keys : tmp_keys;
        sort.to_values = in_tmp ? values : tmp_values;
    }
    return in_tmp;
}

static void copy_back(void *args, size_t begin, size_t end)
{
    const struct sort_args *sort = args;

    memcpy(sort->keys + begin, sort->tmp_keys + begin,
           (end - begin) * sizeof *sort->keys);
    memcpy(sort->values + begin, sort->tmp_values + begin,
           (end - begin) * sizeof *sort->values);
}

static enum vxd_status sort_job(struct vxd_pool *pool, const void *args,
                                struct vxd_err *err)
{
    struct sort_args sort = *(const struct sort_args *)args;

    (void)err;
    if (vxd_sort_pairs_run(pool, sort.keys, sort.values, sort.tmp_keys, sort.tmp_values,
                           sort.n, sort.begin_bit, sort.end_bit, sort.scratch)) {
        vxd_parallel_for(pool, sort.n, MIN_PIECE_ITEMS, copy_back, &sort);
    }
    return VXD_OK;
}

enum vxd_status vxd_sort_pairs_cpu(struct vxd_queue *queue, uint64_t *keys,
                                   uint32_t *values, uint64_t *tmp_keys,
                                   uint32_t *tmp_values, size_t n, int begin_bit,
                                   int end_bit, void *scratch, struct vxd_err *err)
{
    struct sort_args sort = {keys, values,    tmp_keys, tmp_values,
                             n,    begin_bit, end_bit,  scratch};

    return vxd_queue_push(queue, sort_job, &sort, sizeof sort, err);
}
