// SPDX-License-Identifier: Apache-2.0
/* What is left when the power has gone, and looking at it. */
#include <string.h>

#include "proto/base/crc32c.h"
#include "tests/support/durable/fault_internal.h"

static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* Whether a write, the i-th of n of its file, came to the disk; sectors of it may differ. */
static bool is_kept(enum fault_loss loss, size_t i, size_t n, uint64_t *state)
{
    switch (loss) {
    case FAULT_KEEP_ALL:
    case FAULT_KEEP_SOME_SECTORS:
    case FAULT_KEEP_DATA_DROP_NAMES:
        return true;
    case FAULT_KEEP_SOME_WRITES:
        return draw(state) % 2 == 0;
    case FAULT_DROP_EARLY_KEEP_LATE:
        return n - i <= 1 + draw(state) % n;
    case FAULT_KEEP_EARLY_DROP_LATE:
        return i < draw(state) % (n + 1);
    default:
        return false;
    }
}

static void keep_write(struct inode *inode, const struct pending *pending,
                       enum fault_loss loss, uint64_t *state)
{
    for (size_t at = 0; at < pending->n;) {
        size_t n = SECTOR - (size_t)((pending->at + at) % SECTOR);
        size_t end;

        n = n < pending->n - at ? n : pending->n - at;
        end = (size_t)pending->at + at + n;
        if (loss != FAULT_KEEP_SOME_SECTORS || draw(state) % 2 == 0) {
            if (end > inode->n_synced) {
                fault_resize(&inode->synced, &inode->n_synced, end);
            }
            memcpy(inode->synced + pending->at + at, pending->bytes + at, n);
        }
        at += n;
    }
}

static void lose_data(struct inode *inode, enum fault_loss loss, uint64_t *state)
{
    for (size_t i = 0; i < inode->n_pending; i++) {
        const struct pending *pending = &inode->pending[i];

        if (!is_kept(loss, i, inode->n_pending, state)) {
            continue;
        }
        if (pending->bytes == NULL) {
            fault_resize(&inode->synced, &inode->n_synced, (size_t)pending->at);
        } else {
            keep_write(inode, pending, loss, state);
        }
    }
    fault_forget_pending(inode);
    fault_resize(&inode->now, &inode->n_now, inode->n_synced);
    if (inode->n_synced > 0) {
        memcpy(inode->now, inode->synced, inode->n_synced);
    }
}

static bool keeps_names(enum fault_loss loss, uint64_t *state)
{
    switch (loss) {
    case FAULT_KEEP_ALL:
    case FAULT_DROP_DATA_KEEP_NAMES:
        return true;
    case FAULT_DROP_ALL:
    case FAULT_KEEP_DATA_DROP_NAMES:
        return false;
    default:
        return draw(state) % 2 == 0;
    }
}

/* The other name of an entry's move, if it comes before it: what became of it is known. */
static int find_other(const struct fault_disk *disk, int n)
{
    int other = n - 1;

    while (other >= 0 && disk->entries[other].move != disk->entries[n].move) {
        other--;
    }
    return disk->entries[n].move != 0 ? other : -1;
}

static void lose_names(struct fault_disk *disk, enum fault_loss loss, uint64_t *state)
{
    bool keeps[MAX_ENTRIES];

    for (int i = 0; i < (int)disk->n_entries; i++) {
        struct entry *entry = &disk->entries[i];
        int other = find_other(disk, i);

        if (other >= 0) {
            keeps[i] = keeps[other];
        } else {
            keeps[i] = (entry->now == entry->synced && entry->move == 0) ||
                       keeps_names(loss, state);
        }
        if (keeps[i]) {
            fault_assign(&entry->synced, entry->now);
        } else {
            fault_assign(&entry->now, entry->synced);
        }
        if (entry->now != NULL && !fault_has_parent(disk, entry->path)) {
            fault_assign(&entry->now, NULL); /* folders are made before what is in them */
            fault_assign(&entry->synced, NULL);
        }
    }
    for (size_t i = 0; i < disk->n_entries; i++) {
        disk->entries[i].move = 0;
    }
}

void fault_disk_lose_power(struct fault_disk *disk, enum fault_loss loss, uint64_t seed)
{
    uint64_t state = seed;

    for (int i = 0; i < MAX_FILES; i++) {
        fault_assign(&disk->files[i], NULL);
    }
    lose_names(disk, loss, &state);
    for (size_t i = 0; i < disk->n_entries; i++) {
        if (disk->entries[i].now != NULL) {
            lose_data(disk->entries[i].now, loss, &state);
            disk->entries[i].now->is_locked = false;
        }
    }
    disk->is_dead = false;
    disk->n_boots++;
}

void fault_disk_kill(struct fault_disk *disk)
{
    for (int i = 0; i < MAX_FILES; i++) {
        if (disk->files[i] != NULL) {
            disk->files[i]->is_locked = false;
        }
        fault_assign(&disk->files[i], NULL);
    }
    disk->is_dead = false;
}

bool fault_disk_exists(struct fault_disk *disk, const char *path)
{
    bool exists;

    (void)pthread_mutex_lock(&disk->lock);
    exists = fault_find_now(disk, path) != NULL;
    (void)pthread_mutex_unlock(&disk->lock);
    return exists;
}

uint8_t *fault_disk_bytes(struct fault_disk *disk, const char *path, size_t *n_bytes)
{
    struct entry *entry = fault_find_now(disk, path);

    *n_bytes = entry != NULL ? entry->now->n_now : 0;
    return entry != NULL ? entry->now->now : NULL;
}

int64_t fault_bytes_of_all(const struct fault_disk *disk)
{
    int64_t total = 0;

    for (size_t i = 0; i < disk->n_entries; i++) {
        total += disk->entries[i].now != NULL ? (int64_t)disk->entries[i].now->n_now : 0;
    }
    return total;
}

int64_t fault_disk_n_bytes(struct fault_disk *disk)
{
    int64_t n_bytes;

    (void)pthread_mutex_lock(&disk->lock);
    n_bytes = fault_bytes_of_all(disk);
    (void)pthread_mutex_unlock(&disk->lock);
    return n_bytes;
}

uint32_t fault_disk_sum(struct fault_disk *disk)
{
    uint32_t sum = 0;

    for (size_t i = 0; i < disk->n_entries; i++) {
        const struct entry *entry = &disk->entries[i];

        if (entry->now != NULL) {
            sum = vxd_crc32c(sum, entry->path, strlen(entry->path));
            sum = vxd_crc32c(sum, entry->now->now, entry->now->n_now);
        }
    }
    return sum;
}

int fault_disk_n_syncs(struct fault_disk *disk)
{
    return disk->n_syncs;
}

int fault_disk_n_calls(struct fault_disk *disk)
{
    return disk->n_calls;
}
