// SPDX-License-Identifier: Apache-2.0
/* Claims of kept fields: versions beside each other, updates that are left, and memory. */
#include "tests/support/test.h"

#include "server/registry/fields/registry_fields.h"

struct world {
    struct vxd_context *context;
    struct vxd_queue *queue;
    struct vxd_fields *fields;
};

static void begin(struct world *world, size_t device_bytes)
{
    struct vxd_context_options options = {
        .backend = VXD_BACKEND_CPU, .n_threads = 1, .device_bytes = device_bytes};

    REQUIRE(vxd_context_create(&options, &world->context, NULL) == VXD_OK);
    REQUIRE(vxd_queue_create(world->context, &world->queue, NULL) == VXD_OK);
    REQUIRE(vxd_fields_create(world->context, &world->fields, NULL) == VXD_OK);
}

static void end(struct world *world)
{
    vxd_fields_destroy(world->fields);
    vxd_queue_destroy(world->queue);
    vxd_context_destroy(world->context);
}

/* A field of a cube with that side, of a scene's version. */
static enum vxd_field_claim claim(struct world *world, uint64_t generation,
                                  uint64_t version, int32_t side,
                                  struct vxd_kept_field **out)
{
    struct vxd_field_want want = {.generation = generation, .version = version};
    enum vxd_field_claim found = VXD_FIELD_BUSY;

    want.spec = (struct vxd_field_spec){
        .high = {side, side, side}, .max_distance = 2, .voxel_size_m = 1};
    CHECK_INT(
        vxd_fields_claim(world->fields, world->queue, &want, "box", out, &found, NULL),
        VXD_OK);
    return found;
}

static void give_back(struct world *world, struct vxd_kept_field *kept)
{
    vxd_fields_release(world->fields, world->queue, kept);
    CHECK_INT(vxd_queue_wait(world->queue, NULL), VXD_OK);
}

static size_t n_fields(struct world *world)
{
    struct vxd_fields_usage usage;

    vxd_fields_get_usage(world->fields, &usage);
    return usage.n_fields;
}

static size_t device_bytes(struct world *world)
{
    struct vxd_memory_usage usage;

    vxd_context_get_memory(world->context, &usage);
    return usage.device_bytes;
}

static void test_versions_have_fields_beside_each_other(void)
{
    struct world world;
    struct vxd_kept_field *first = NULL;
    struct vxd_kept_field *second = NULL;
    struct vxd_kept_field *none = NULL;

    begin(&world, 64 << 20);
    CHECK_INT(claim(&world, 1, 1, 32, &first), VXD_FIELD_STALE);
    /* It is on its way to version 1: no second one is made for that. */
    CHECK_INT(claim(&world, 1, 1, 32, &none), VXD_FIELD_BUSY);
    vxd_fields_set_ready(world.fields, first, 1);
    CHECK_INT(claim(&world, 1, 2, 32, &second), VXD_FIELD_STALE);
    CHECK(second != first);
    vxd_fields_set_ready(world.fields, second, 2);
    give_back(&world, first);
    give_back(&world, second);
    CHECK_INT(claim(&world, 1, 2, 32, &second), VXD_FIELD_READY);
    CHECK_INT(claim(&world, 1, 1, 32, &first), VXD_FIELD_READY);
    CHECK_INT(n_fields(&world), 2);
    give_back(&world, first);
    give_back(&world, second);
    end(&world);
}

/* Where there is no memory for a second one, the other version waits. */
static void test_version_waits_where_memory_has_room_for_one_field(void)
{
    struct world world;
    struct vxd_kept_field *first = NULL;
    struct vxd_kept_field *second = NULL;

    begin(&world, 12 << 20); /* fields: 3 MB of it, one takes 2 */
    CHECK_INT(claim(&world, 1, 1, 64, &first), VXD_FIELD_STALE);
    vxd_fields_set_ready(world.fields, first, 1);
    CHECK_INT(claim(&world, 1, 2, 64, &second), VXD_FIELD_BUSY);
    give_back(&world, first);
    CHECK_INT(claim(&world, 1, 2, 64, &second), VXD_FIELD_STALE);
    CHECK(second == first);
    give_back(&world, second);
    end(&world);
}

static void test_field_whose_update_was_left_is_made_anew(void)
{
    struct world world;
    struct vxd_kept_field *first = NULL;
    struct vxd_kept_field *again = NULL;

    begin(&world, 64 << 20);
    CHECK_INT(claim(&world, 1, 1, 32, &first), VXD_FIELD_STALE);
    vxd_fields_set_ready(world.fields, first, 1);
    give_back(&world, first);
    CHECK_INT(claim(&world, 1, 2, 32, &first), VXD_FIELD_STALE);
    give_back(&world, first); /* its request expired */
    CHECK_INT(n_fields(&world), 1);
    CHECK_INT(claim(&world, 1, 2, 32, &again), VXD_FIELD_STALE);
    CHECK(again == first);
    vxd_fields_set_ready(world.fields, again, 2);
    give_back(&world, again);
    end(&world);
}

static void test_fields_of_a_dropped_scene_are_freed_at_once(void)
{
    struct world world;
    struct vxd_kept_field *idle = NULL;
    struct vxd_kept_field *held = NULL;
    size_t before;

    begin(&world, 64 << 20);
    before = device_bytes(&world);
    CHECK_INT(claim(&world, 1, 1, 32, &idle), VXD_FIELD_STALE);
    give_back(&world, idle);
    CHECK(device_bytes(&world) > before);
    vxd_fields_drop_scene(world.fields, NULL, 1);
    CHECK_INT(device_bytes(&world), before);
    CHECK_INT(claim(&world, 2, 1, 32, &held), VXD_FIELD_STALE);
    vxd_fields_drop_scene(world.fields, NULL, 2);
    CHECK_INT(n_fields(&world), 1);
    give_back(&world, held);
    CHECK_INT(device_bytes(&world), before);
    end(&world);
}

/* What eviction frees is there when the queue has run: in the next stage. */
static void test_evicted_memory_is_claimed_by_the_next_stage(void)
{
    struct world world;
    struct vxd_kept_field *kept = NULL;
    struct vxd_buffer rest = {0};
    size_t free_bytes;

    begin(&world, 16 << 20);
    CHECK_INT(claim(&world, 1, 1, 32, &kept), VXD_FIELD_STALE);
    give_back(&world, kept);
    free_bytes = (16 << 20) - device_bytes(&world);
    REQUIRE(vxd_device_alloc(world.queue, free_bytes - 4096, &rest, NULL) == VXD_OK);
    CHECK_INT(claim(&world, 2, 1, 32, &kept), VXD_FIELD_BUSY);
    CHECK_INT(vxd_queue_wait(world.queue, NULL), VXD_OK);
    CHECK_INT(claim(&world, 2, 1, 32, &kept), VXD_FIELD_STALE);
    CHECK_INT(n_fields(&world), 1);
    give_back(&world, kept);
    vxd_device_free(world.queue, &rest);
    end(&world);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_versions_have_fields_beside_each_other),
    VXD_TEST(test_version_waits_where_memory_has_room_for_one_field),
    VXD_TEST(test_field_whose_update_was_left_is_made_anew),
    VXD_TEST(test_fields_of_a_dropped_scene_are_freed_at_once),
    VXD_TEST(test_evicted_memory_is_claimed_by_the_next_stage),
};

VXD_TEST_MAIN(tests)
