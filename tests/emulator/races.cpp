// SPDX-License-Identifier: Apache-2.0
/* Races between plain accesses, for VOXELD_EMULATOR_RACES=1.
 *
 * Two threads that access the same bytes, one of them to write, need something between them that
 * orders that: in a warp a collective or barrier that the first came to after its access and one
 * that the second passed later, before its own; between warps also one of each warp in between
 * that holds for a block, between blocks one of each block that holds for the device: a fence,
 * an acquiring load, a releasing store, a grid's barrier. So times of barriers and fences are
 * kept a thread, a warp and a block, and for each word who wrote it last and who read it. What
 * lacks these is a race by CUDA's rules whatever the order of this run. Not all races are found:
 * whom a fence meant is not asked. Atomic and volatile accesses race with none, nor do writes of
 * what is there already: flags that many set. */
#include <link.h>
#include <unistd.h>

#include <set>
#include <utility>

#include "tests/emulator/device.h"

#define N_CELLS ((size_t)1 << 19)
#define WORD_BYTES 4
#define MOST_TOLD 20

struct access {
    const struct emu_past *past;
    uint64_t thread;
    uint32_t n_passed; /* barriers and fences */
    uint32_t bytes;    /* of the word, bits */
    const void *code;
};

struct cell {
    uintptr_t word;
    uint64_t launch;
    struct access write;
    struct access reads[2];
};

/* A write over another's, to be told if it changes the word: known when it has been done. */
struct overwrite {
    const uint32_t *word; /* NULL: none */
    uint32_t before;
    struct access write;
    const struct emu_past *past;
    const void *code;
};

static struct cell *cells;
static struct overwrite overwrite;
static uint64_t now;
static std::set<std::pair<const void *, const void *>> *told;

bool emu_finds_races(void)
{
    static const char *const text = getenv("VOXELD_EMULATOR_RACES");
    static const bool is_on = text != NULL && text[0] != '\0';

    return is_on;
}

static void add_time(struct emu_times *times)
{
    if (times->n == 0 || times->at[(times->n - 1) % EMU_PAST] != now) {
        times->at[times->n++ % EMU_PAST] = now;
    }
}

void emu_past_order(struct emu_past *past, enum emu_scope scope, bool is_new)
{
    now += is_new;
    add_time(&past->own);
    if (scope >= EMU_BLOCK) {
        add_time(past->of_warp);
    }
    if (scope >= EMU_DEVICE) {
        add_time(past->of_block);
    }
}

/* The first that is not before `from`; UINT64_MAX where there is none. What is no longer known
 * counts as being there. */
static uint64_t first_from(const struct emu_times *times, uint64_t from)
{
    uint32_t n_kept = times->n < EMU_PAST ? times->n : EMU_PAST;
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 1; i <= n_kept; i++) {
        uint64_t at = times->at[(times->n - i) % EMU_PAST];

        if (at < from) {
            return first;
        }
        first = at;
    }
    return times->n > EMU_PAST ? from : first;
}

/* The last that is not after `to`; 0 where there is none. */
static uint64_t last_to(const struct emu_times *times, uint64_t to)
{
    uint32_t n_kept = times->n < EMU_PAST ? times->n : EMU_PAST;

    for (uint32_t i = 1; i <= n_kept; i++) {
        uint64_t at = times->at[(times->n - i) % EMU_PAST];

        if (at <= to) {
            return at;
        }
    }
    return times->n > EMU_PAST ? to : 0;
}

/* Whether nothing orders an access and one of `past` that is made now. */
static bool is_race(const struct access *before, const struct emu_past *past)
{
    const struct emu_past *other = before->past;
    uint32_t n_since;
    uint64_t from;
    uint64_t to;

    if (other == NULL || other == past || other->thread != before->thread) {
        return false; /* nobody's, the own, or of a thread that has ended */
    }
    n_since = other->own.n - before->n_passed;
    if (n_since == 0 || past->own.n == 0) {
        return true;
    }
    if (n_since > EMU_PAST) {
        return false;
    }
    from = other->own.at[before->n_passed % EMU_PAST];
    to = past->own.at[(past->own.n - 1) % EMU_PAST];
    if (other->block != past->block) {
        from = first_from(other->of_block, from);
        to = last_to(past->of_block, to);
    } else if (other->thread / 32 != past->thread / 32) {
        from = first_from(other->of_warp, from);
        to = last_to(past->of_warp, to);
    }
    return from > to;
}

static bool is_stack(const void *at)
{
    const char *stacks = emu_self->block->stacks;

    return (const char *)at >= stacks &&
           (const char *)at < stacks + MOST_THREADS * STACK_BYTES;
}

static bool is_shared(const void *at)
{
    for (unsigned i = 0; i < emu_grid.n_resident; i++) {
        const char *shared = emu_blocks[i]->shared;

        if ((const char *)at >= shared && (const char *)at < shared + SHARED_BYTES) {
            return true;
        }
    }
    return false;
}

static int first_image(struct dl_phdr_info *info, size_t, void *base)
{
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

/* What is subtracted from an address in this program to get that in its file. */
static uintptr_t image_base(void)
{
    uintptr_t base = 0;

    (void)dl_iterate_phdr(first_image, &base);
    return base;
}

static void tell_line(const void *code)
{
    char command[128];

    (void)snprintf(command, sizeof command, "addr2line -p -i -s -e /proc/%d/exe %p 1>&2",
                   (int)getpid(), (void *)((const char *)code - 1 - image_base()));
    if (system(command) != 0) {
        fprintf(stderr, "%p\n", code);
    }
}

static void end_with_races(void)
{
    fprintf(stderr, "emulator: %zu pairs of places race\n", told->size());
    _exit(66);
}

static void tell(const struct access *before, const char *did,
                 const struct emu_past *past, const char *does, const void *code,
                 const void *at)
{
    if (told == NULL) {
        told = new std::set<std::pair<const void *, const void *>>;
        (void)atexit(end_with_races);
    }
    if (!told->insert({before->code, code}).second || told->size() > MOST_TOLD) {
        return;
    }
    fprintf(stderr,
            "emulator: race in kernel %s, %s memory: thread %u of block %u %s at ",
            emu_grid.launch->name, is_shared(at) ? "shared" : "global",
            (unsigned)(past->thread % 1024), past->block, does);
    tell_line(code);
    fprintf(stderr, "emulator:   what thread %u of block %u %s at ",
            (unsigned)(before->thread % 1024), before->past->block, did);
    tell_line(before->code);
}

/* Before anything else is accessed, so that only that write has been done since. */
void emu_race_settle(void)
{
    const uint32_t *word = overwrite.word;

    overwrite.word = NULL;
    if (word != NULL && *word != overwrite.before) {
        tell(&overwrite.write, "wrote", overwrite.past, "writes", overwrite.code, word);
    }
}

static void look(struct cell *cell, const struct emu_past *past, uint32_t bytes,
                 bool is_write, const void *code, const void *at)
{
    if ((cell->write.bytes & bytes) != 0 && is_race(&cell->write, past)) {
        if (is_write) {
            const uint32_t *word = (const uint32_t *)(cell->word * WORD_BYTES);

            overwrite = {word, *word, cell->write, past, code};
        } else {
            tell(&cell->write, "wrote", past, "reads", code, at);
        }
    }
    for (int i = 0; is_write && i < 2; i++) {
        if ((cell->reads[i].bytes & bytes) != 0 && is_race(&cell->reads[i], past)) {
            tell(&cell->reads[i], "read", past, "writes", code, at);
        }
    }
}

static void note(struct cell *cell, const struct emu_past *past, uint32_t bytes,
                 bool is_write, const void *code)
{
    struct access *access = is_write ? &cell->write : &cell->reads[0];

    if (access->past == past && access->thread == past->thread) {
        bytes |= access->n_passed == past->own.n ? access->bytes : 0;
    } else if (!is_write) {
        cell->reads[1] = cell->reads[0];
    }
    access->past = past;
    access->thread = past->thread;
    access->n_passed = past->own.n;
    access->bytes = bytes;
    access->code = code;
}

void emu_race_look(const void *at, size_t n_bytes, bool is_write, const void *code)
{
    const struct emu_past *past = &emu_self->past;
    uintptr_t begin = (uintptr_t)at;
    uintptr_t end = begin + n_bytes;

    emu_race_settle();
    if (is_stack(at)) {
        return;
    }
    if (cells == NULL) {
        cells = new struct cell[N_CELLS]();
    }
    for (uintptr_t word = begin / WORD_BYTES; word * WORD_BYTES < end; word++) {
        struct cell *cell = cells + (word * 0x9e3779b97f4a7c15ULL >> 20 & (N_CELLS - 1));
        uint32_t bytes = 0;

        for (uintptr_t i = 0; i < WORD_BYTES; i++) {
            uintptr_t byte = word * WORD_BYTES + i;

            bytes |= (uint32_t)(byte >= begin && byte < end) << i;
        }
        if (cell->word != word || cell->launch != emu_grid.id) {
            memset(cell, 0, sizeof *cell);
            cell->word = word;
            cell->launch = emu_grid.id;
        }
        look(cell, past, bytes, is_write, code, at);
        note(cell, past, bytes, is_write, code);
    }
}
