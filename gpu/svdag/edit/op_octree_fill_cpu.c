// SPDX-License-Identifier: Apache-2.0
/* Shares operations out to bins, from the whole scene's down. */
#include "gpu/svdag/edit/op_octree_cpu.h"
#include "gpu/svdag/brush/brush_cpu.h"

enum {
    MIN_HEIGHT = VXD_SVDAG_LEAF_HEIGHT + 1, /* of bins */
    MEMBERS_AN_OP = 64,                     /* room for as many bins as it may be in */
    BINS_AN_OP = 8,      /* one with parts has more than 64 of those members */
    LISTED_AN_OP = 1024, /* leaves of lists have as much room as an operation */
    LEAVES_A_LISTED = 32 /* of a table, at most */
};

static bool is_list(const struct vxd_svdag_op *op)
{
    return op->shape.kind == VXD_SVDAG_VOXELS;
}

static bool takes_a_run(const struct vxd_svdag_bin *bin)
{
    return bin->n <= VXD_SVDAG_SHAPES_OPS && bin->n_lists <= VXD_SVDAG_SHAPES_LISTS;
}

/* A table for its lists, and a run for the others. Tables are not made where they would be mostly
 * empty. */
static bool takes_a_table(const struct vxd_svdag_bin *bin)
{
    return bin->n_lists > VXD_SVDAG_SHAPES_LISTS &&
           bin->n - bin->n_lists <= VXD_SVDAG_SHAPES_OPS &&
           bin->cube.height <= VXD_SVDAG_LISTED_HEIGHT &&
           (bin->cube.height == MIN_HEIGHT ||
            bin->n_listed * LEAVES_A_LISTED >= vxd_svdag_listed_leaves(&bin->cube));
}

/* Parts ------------------------------------------------------------------------------------ */

/* How each operation lies to all parts of a bin. */
static void split(struct vxd_svdag_bins *bins, const struct vxd_svdag_bin *bin)
{
    for (uint32_t i = 0; i < bin->n; i++) {
        const struct vxd_svdag_listed_range *member = &bins->members[bin->first + i];
        const struct vxd_svdag_op *op = &bins->ops[member->number];
        struct vxd_svdag_relations octants = {0, 0};

        if (!is_list(op)) {
            octants = vxd_svdag_shapes_octants(op, &bin->cube);
        }
        bins->splits[i] =
            (struct vxd_svdag_bins_split){.outside = (uint8_t)octants.outside,
                                          .inside = (uint8_t)octants.inside,
                                          .next = member->begin};
    }
}

/* What of an operation is in a part, after those before it; false where nothing is. */
static bool take_part(const struct vxd_svdag_bins *bins,
                      const struct vxd_svdag_listed_range *member,
                      struct vxd_svdag_bins_split *of_member, uint64_t end_code,
                      int octant, struct vxd_svdag_listed_range *out)
{
    const struct vxd_svdag_op *op = &bins->ops[member->number];

    *out = (struct vxd_svdag_listed_range){.number = member->number};
    if (!is_list(op)) {
        return (of_member->outside >> octant & 1) == 0;
    }
    out->begin = of_member->next;
    out->end = (uint32_t)vxd_svdag_list_bound(op->shape.voxels.codes, out->begin,
                                              member->end, end_code);
    of_member->next = out->end;
    return out->begin < out->end;
}

/* Fills a part of a bin that was split; false where there is no room. */
static bool fill_part(struct vxd_svdag_bins *bins, const struct vxd_svdag_bin *bin,
                      int octant, struct vxd_svdag_bin *part)
{
    const uint64_t end_code =
        vxd_svdag_list_code(part->cube.x, part->cube.y, part->cube.z) +
        vxd_svdag_listed_leaves(&part->cube);

    part->first = (uint32_t)bins->n_members;
    for (uint32_t i = 0; i < bin->n; i++) {
        const struct vxd_svdag_listed_range *member = &bins->members[bin->first + i];
        const struct vxd_svdag_op *op = &bins->ops[member->number];
        struct vxd_svdag_listed_range in_part;

        if (!take_part(bins, member, &bins->splits[i], end_code, octant, &in_part)) {
            continue;
        }
        if ((bins->splits[i].inside >> octant & 1) != 0 && vxd_svdag_is_overwriting(op)) {
            part->n = 0;
            part->n_lists = 0;
            part->n_listed = 0;
        }
        if (part->first + part->n == bins->most_members) {
            return false;
        }
        bins->members[part->first + part->n++] = in_part;
        part->n_lists += is_list(op);
        part->n_listed += in_part.end - in_part.begin;
    }
    bins->n_members += part->n;
    return true;
}

/* The whole scene's; false where a list is longer than a range can say. */
static bool fill_first(struct vxd_svdag_bins *bins)
{
    struct vxd_svdag_bin *bin = &bins->bins[0];

    *bin = (struct vxd_svdag_bin){.cube = {.height = bins->view->depth},
                                  .n = (uint32_t)bins->n_ops};
    bins->n_bins = 1;
    for (size_t i = 0; i < bins->n_ops; i++) {
        const struct vxd_svdag_op *op = &bins->ops[i];

        bins->members[i] = (struct vxd_svdag_listed_range){.number = (uint32_t)i};
        if (is_list(op)) {
            if (op->shape.voxels.n > UINT32_MAX) {
                return false;
            }
            bins->members[i].end = (uint32_t)op->shape.voxels.n;
            bin->n_listed += op->shape.voxels.n;
            bin->n_lists++;
        }
    }
    bins->n_members = bins->n_ops;
    return true;
}

/* False where too many operations meet. */
static bool fill_all(struct vxd_svdag_bins *bins)
{
    if (!fill_first(bins)) {
        return false;
    }
    for (size_t i = 0; i < bins->n_bins; i++) {
        struct vxd_svdag_bin *bin = &bins->bins[i];

        if (takes_a_run(bin)) {
            continue;
        }
        bin->has_table = takes_a_table(bin);
        if (bin->has_table) {
            continue;
        }
        if (bin->cube.height <= MIN_HEIGHT || bins->n_bins + 8 > bins->most_bins) {
            return false;
        }
        split(bins, bin);
        bin->parts = (uint32_t)bins->n_bins;
        for (int octant = 0; octant < 8; octant++) {
            struct vxd_svdag_bin *part = &bins->bins[bins->n_bins++];

            *part =
                (struct vxd_svdag_bin){.cube = vxd_svdag_cube_child(&bin->cube, octant)};
            if (!fill_part(bins, bin, octant, part)) {
                return false;
            }
        }
    }
    return true;
}

/* Runs ------------------------------------------------------------------------------------- */

/* Operations of its run; 0: it has none. */
static uint32_t n_run(const struct vxd_svdag_bin *bin)
{
    return bin->parts != 0 ? 0 : bin->has_table ? bin->n - bin->n_lists : bin->n;
}

static void make_run(const struct vxd_svdag_bins *bins, struct vxd_svdag_bin *bin,
                     struct vxd_svdag_shape_op *ops)
{
    int n_lists = 0;
    int n = 0;

    bin->run = (struct vxd_svdag_shapes_run){.ops = ops,
                                             .has_materials = bins->view->value_bits > 1,
                                             .free_value = bins->view->free_value};
    for (uint32_t i = 0; i < bin->n; i++) {
        const struct vxd_svdag_op *op = &bins->ops[bins->members[bin->first + i].number];

        if (is_list(op) && bin->has_table) {
            continue;
        }
        ops[n].op = op;
        ops[n].list = is_list(op) ? n_lists++ : VXD_SVDAG_NO_LIST;
        bin->run.overwriting |= (uint64_t)vxd_svdag_is_overwriting(op) << n;
        n++;
    }
    bin->run.n = n;
}

static enum vxd_status make_runs(struct vxd_svdag_bins *bins, struct vxd_err *err)
{
    struct vxd_svdag_shape_op *ops;
    size_t n = 0;
    enum vxd_status status;

    for (size_t i = 0; i < bins->n_bins; i++) {
        n += n_run(&bins->bins[i]);
    }
    VXD_TRY(
        vxd_host_alloc(bins->context, (n + 1) * sizeof *ops, &bins->runs_memory, err));
    ops = bins->runs_memory.ptr;
    for (size_t i = 0; i < bins->n_bins; i++) {
        if (bins->bins[i].parts == 0 && bins->bins[i].n > 0) {
            make_run(bins, &bins->bins[i], ops);
            ops += bins->bins[i].run.n;
        }
    }
out:
    return status;
}

/* Tables ----------------------------------------------------------------------------------- */

/* Bytes of a table, its entries first. */
static size_t table_bytes(const struct vxd_svdag_bin *bin)
{
    return (size_t)bin->n_listed * sizeof(struct vxd_svdag_listed) +
           (vxd_svdag_listed_leaves(&bin->cube) / 2 + 1) * sizeof(uint64_t);
}

/* What bins need no more of their members is overwritten. */
static void make_tables(void *args, size_t begin, size_t end)
{
    struct vxd_svdag_bins *bins = args;

    for (size_t i = begin; i < end; i++) {
        struct vxd_svdag_bin *bin = &bins->bins[i];
        struct vxd_svdag_listed_range *members = &bins->members[bin->first];
        struct vxd_svdag_listed *entries = bin->table_memory;
        uint32_t n = 0;

        if (!bin->has_table) {
            continue;
        }
        for (uint32_t k = 0; k < bin->n; k++) {
            if (is_list(&bins->ops[members[k].number])) {
                members[n++] = members[k];
            }
        }
        vxd_svdag_listed_make(&bin->cube, bins->ops, members, n,
                              (uint32_t *)(void *)(entries + bin->n_listed), entries,
                              &bin->table);
    }
}

static enum vxd_status take_tables(struct vxd_svdag_bins *bins, struct vxd_err *err)
{
    size_t n_bytes = 0;
    unsigned char *next;
    enum vxd_status status = VXD_OK;

    for (size_t i = 0; i < bins->n_bins; i++) {
        n_bytes += bins->bins[i].has_table ? table_bytes(&bins->bins[i]) : 0;
    }
    if (n_bytes == 0) {
        return VXD_OK;
    }
    VXD_TRY(vxd_host_alloc(bins->context, n_bytes, &bins->tables_memory, err));
    next = bins->tables_memory.ptr;
    for (size_t i = 0; i < bins->n_bins; i++) {
        if (bins->bins[i].has_table) {
            bins->bins[i].table_memory = (struct vxd_svdag_listed *)(void *)next;
            next += table_bytes(&bins->bins[i]);
        }
    }
    vxd_parallel_for(bins->context->pool, bins->n_bins, 1, make_tables, bins);
out:
    return status;
}

/* ------------------------------------------------------------------------------------------ */

static enum vxd_status bins_alloc(struct vxd_svdag_bins *bins, struct vxd_err *err)
{
    size_t n = bins->n_ops;
    enum vxd_status status;

    for (size_t i = 0; i < bins->n_ops; i++) {
        n += is_list(&bins->ops[i]) ? bins->ops[i].shape.voxels.n / LISTED_AN_OP : 0;
    }
    bins->most_bins = BINS_AN_OP * n;
    bins->most_members = MEMBERS_AN_OP * n;
    VXD_TRY(vxd_host_alloc(bins->context, bins->most_bins * sizeof *bins->bins,
                           &bins->bins_memory, err));
    bins->bins = bins->bins_memory.ptr;
    VXD_TRY(vxd_host_alloc(bins->context, bins->most_members * sizeof *bins->members,
                           &bins->members_memory, err));
    bins->members = bins->members_memory.ptr;
    VXD_TRY(vxd_host_alloc(bins->context, bins->n_ops * sizeof *bins->splits,
                           &bins->splits_memory, err));
    bins->splits = bins->splits_memory.ptr;
out:
    return status;
}

enum vxd_status vxd_svdag_bins_fill(struct vxd_svdag_bins *bins, bool *fits,
                                    struct vxd_err *err)
{
    enum vxd_status status;

    *fits = false;
    VXD_TRY(bins_alloc(bins, err));
    *fits = fill_all(bins);
    if (*fits) {
        VXD_TRY(make_runs(bins, err));
        VXD_TRY(take_tables(bins, err));
    }
out:
    return status;
}
