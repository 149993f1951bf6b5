// SPDX-License-Identifier: Apache-2.0
/* Fibers: the switch between them, the choice of the next one, and the detection of
 * threads that only spin. */
#include <time.h>

#include <utility>

#include "tests/emulator/device.h"

/* Switches between two reads of the clock. */
#define LOOK_EVERY 65536

thread_local struct emu_lane *emu_self;
thread_local int emu_budget = 1 << 30;
static uint64_t random_state;

uint64_t emu_random(void)
{
    if (random_state == 0) {
        random_state =
            (uint64_t)emu_setting("VOXELD_EMULATOR_SEED", 1) * 0x9e3779b97f4a7c15ULL | 1;
    }
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

__asm__(".text\n"
        ".globl emu_switch\n"
        ".type emu_switch,@function\n"
        "emu_switch:\n"
        "    push %rbp\n"
        "    push %rbx\n"
        "    push %r12\n"
        "    push %r13\n"
        "    push %r14\n"
        "    push %r15\n"
        "    mov %rsp, (%rdi)\n"
        "    mov %rsi, %rsp\n"
        "    pop %r15\n"
        "    pop %r14\n"
        "    pop %r13\n"
        "    pop %r12\n"
        "    pop %rbx\n"
        "    pop %rbp\n"
        "    ret\n"
        ".size emu_switch,.-emu_switch\n");

/* Processor time of this thread, because other processes may hold the processor for
 * long. */
static time_t now_s(void)
{
    struct timespec now;

    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return now.tv_sec;
}

/* Threads spin where they run, but no collective, barrier or thread ends. */
static void look_at_clock(void)
{
    if (emu_grid.has_progressed) {
        emu_grid.has_progressed = false;
        emu_grid.progressed_s = now_s();
    } else if (now_s() - emu_grid.progressed_s >= emu_grid.most_s) {
        emu_die("the kernel does not end", NULL);
    }
}

/* Mostly the fiber that became runnable last, whose memory is in the cache; often any
 * other. */
struct emu_lane *emu_take_runnable(void)
{
    uint64_t r = emu_random();
    unsigned at = emu_grid.n_runnable - 1;
    struct emu_lane *lane;

    if ((r & 3) == 0) {
        at = (unsigned)((r >> 32) * emu_grid.n_runnable >> 32);
    }
    lane = emu_grid.runnable[at];
    emu_grid.runnable[at] = emu_grid.runnable[--emu_grid.n_runnable];
    return lane;
}

void emu_make_runnable(struct emu_lane *lane)
{
    lane->state = RUNNABLE;
    emu_grid.runnable[emu_grid.n_runnable++] = lane;
}

void emu_begin_budget(void)
{
    emu_budget = 1 + (int)(emu_random() & emu_grid.pace);
}

void emu_leave(struct emu_lane *lane)
{
    if (++emu_grid.n_switches % LOOK_EVERY == 0) {
        look_at_clock();
    }
    if (emu_grid.n_runnable == 0) {
        emu_self = NULL;
        emu_switch(&lane->sp, emu_grid.main_sp);
    } else {
        struct emu_lane *next = emu_take_runnable();

        if (next != lane) {
            emu_self = next;
            emu_switch(&lane->sp, next->sp);
        }
    }
    emu_self = lane;
    emu_begin_budget();
}

void emu_preempt(void)
{
    struct emu_lane *lane = emu_self;

    if (lane == NULL) {
        emu_budget = 1 << 30;
        return;
    }
    emu_make_runnable(lane);
    /* Inserted at a random position: at the end, a thread that waits for others would
     * be taken again at once. */
    std::swap(emu_grid.runnable[emu_random() % emu_grid.n_runnable],
              emu_grid.runnable[emu_grid.n_runnable - 1]);
    emu_leave(lane);
}

void emu_yield(void)
{
    emu_preempt();
}
