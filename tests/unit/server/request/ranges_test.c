// SPDX-License-Identifier: Apache-2.0
/* What fields of requests may be: values at both ends of a range and just beyond them, what is no number,
 * words of enums, fields deep in a message; and that the schema's limits are those of the engine. */
#include "server/request/ranges/ranges.h"

#include <math.h>
#include <string.h>

#include "gpu/hash/hash.h"
#include "gpu/odometry/odometry.h"
#include "gpu/posegraph/posegraph.h"
#include "gpu/refine/refine.h"
#include "gpu/render/render.h"
#include "gpu/svdag/svdag.h"
#include "gpu/track/track.h"
#include "server/access/auth.h"
#include "server/registry/scenes/named_scenes.h"
#include "tests/support/test.h"
#include "voxeld/v1/rpc.pb-c.h"

static void check_refused(const ProtobufCMessage *request, const char *field,
                          const char *message)
{
    struct vxd_err err = {0};

    CHECK_INT(vxd_ranges_check(request, &err), VXD_INVALID_ARGUMENT);
    CHECK_STR(err.field, field);
    CHECK_STR(err.message, message);
}

static void check_passes(const ProtobufCMessage *request)
{
    struct vxd_err err = {0};

    CHECK_INT(vxd_ranges_check(request, &err), VXD_OK);
    CHECK_STR(err.message, "");
}

static void test_number_at_an_end_of_its_range_passes_and_one_beyond_is_refused(void)
{
    Voxeld__V1__VolumeRenderRequest request = VOXELD__V1__VOLUME_RENDER_REQUEST__INIT;
    const double right[] = {0, 1e-300, 50, 179};
    const double wrong[] = {-1e-300, -1, 179.5, INFINITY, -INFINITY};

    for (size_t i = 0; i < sizeof right / sizeof right[0]; i++) {
        request.fov_y_deg = right[i];
        check_passes(&request.base);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        struct vxd_err err = {0};

        request.fov_y_deg = wrong[i];
        CHECK_INT(vxd_ranges_check(&request.base, &err), VXD_INVALID_ARGUMENT);
        CHECK_STR(err.field, "fov_y_deg");
    }
    request.fov_y_deg = 180;
    check_refused(&request.base, "fov_y_deg",
                  "is 180, it must be 0 to 179 (0 counts as 50)");
    request.fov_y_deg = NAN;
    CHECK_INT(vxd_ranges_check(&request.base, NULL), VXD_INVALID_ARGUMENT);
}

static void test_end_that_a_range_is_without_is_refused(void)
{
    Voxeld__V1__SceneNearestRequest nearest = VOXELD__V1__SCENE_NEAREST_REQUEST__INIT;
    Voxeld__V1__PosegraphSolveRequest solve = VOXELD__V1__POSEGRAPH_SOLVE_REQUEST__INIT;

    check_refused(&nearest.base, "radius_m", "is 0, it must be > 0 and finite");
    nearest.radius_m = 1e300;
    check_passes(&nearest.base);
    nearest.radius_m = INFINITY;
    check_refused(&nearest.base, "radius_m", "is inf, it must be > 0 and finite");
    solve.relative_tolerance = 0.999;
    check_passes(&solve.base);
    solve.relative_tolerance = 1;
    CHECK_INT(vxd_ranges_check(&solve.base, NULL), VXD_INVALID_ARGUMENT);
}

static void test_whole_numbers_and_those_that_are_listed(void)
{
    Voxeld__V1__MapFindRequest find = VOXELD__V1__MAP_FIND_REQUEST__INIT;
    Voxeld__V1__TokenIssueRequest issue = VOXELD__V1__TOKEN_ISSUE_REQUEST__INIT;

    find.neighbours = 27;
    check_passes(&find.base);
    find.neighbours = 7;
    check_refused(&find.base, "neighbours", "is 7, it must be 0, 6, 8 or 27");
    issue.ttl_s = 604800;
    check_passes(&issue.base);
    issue.ttl_s = UINT64_MAX;
    CHECK_INT(vxd_ranges_check(&issue.base, NULL), VXD_INVALID_ARGUMENT);
}

static void test_unknown_word_of_an_enum_is_refused_with_those_that_are_known(void)
{
    Voxeld__V1__MapUpdateRequest request = VOXELD__V1__MAP_UPDATE_REQUEST__INIT;

    check_passes(&request.base);
    request.combine = (Voxeld__V1__MapCombine)9;
    check_refused(&request.base, "combine",
                  "is 9; known: MAP_SET, MAP_ADD, MAP_MIN, MAP_MAX");
    request.combine = (Voxeld__V1__MapCombine)-1;
    CHECK_INT(vxd_ranges_check(&request.base, NULL), VXD_INVALID_ARGUMENT);
}

static void test_field_in_a_list_is_named_by_its_path(void)
{
    Voxeld__V1__PosegraphEdge edges[2] = {VOXELD__V1__POSEGRAPH_EDGE__INIT,
                                          VOXELD__V1__POSEGRAPH_EDGE__INIT};
    Voxeld__V1__PosegraphEdge *list[2] = {&edges[0], &edges[1]};
    Voxeld__V1__PosegraphAddRequest add = VOXELD__V1__POSEGRAPH_ADD_REQUEST__INIT;
    Voxeld__V1__SceneRetention retention = VOXELD__V1__SCENE_RETENTION__INIT;
    Voxeld__V1__SceneCreateRequest create = VOXELD__V1__SCENE_CREATE_REQUEST__INIT;

    add.edges = list;
    add.n_edges = 2;
    check_passes(&add.base);
    edges[1].width = -1;
    check_refused(&add.base, "edges[1].width",
                  "is -1, it must be 0 to 1000000000 (0 counts as 1)");
    add.n_edges = 1;
    check_passes(&add.base);
    check_passes(&create.base); /* a message that is not there is fine */
    retention.versions = 4097;
    create.retention = &retention;
    check_refused(&create.base, "retention.versions",
                  "is 4097, it must be 0 to 4096 (0 counts as 64)");
}

/* A request without a field that may be wrong. */
static void test_request_that_the_table_has_not_passes(void)
{
    Voxeld__V1__MapListRequest request = VOXELD__V1__MAP_LIST_REQUEST__INIT;

    check_passes(&request.base);
}

/* The row of a request's field, NULL where there is none. */
static const struct vxd_field_range *find(const char *message, const char *field)
{
    for (size_t i = 0; i < vxd_n_request_ranges; i++) {
        const struct vxd_request_ranges *of = &vxd_request_ranges[i];

        for (size_t k = 0; k < of->ranges->n; k++) {
            if (strcmp(of->message->short_name, message) == 0 &&
                strcmp(of->ranges->fields[k].name, field) == 0) {
                return &of->ranges->fields[k];
            }
        }
    }
    return NULL;
}

/* Arrays of the engine and of jobs are as long as these, which nobody else checks. */
static void test_limits_of_the_schema_are_the_engines(void)
{
    static const struct {
        const char *message;
        const char *field;
        double limit;
    } cases[] = {
        {"OdometryCreateRequest", "max_points", VXD_ODOMETRY_MAX_VOXEL_POINTS},
        {"PosegraphSolveRequest", "max_iterations", VXD_POSEGRAPH_MAX_ITERATIONS},
        {"PosegraphOptimizeRequest", "max_iterations", VXD_POSEGRAPH_MAX_ITERATIONS},
        {"PosegraphRelocalizeRequest", "candidates", 64},
        {"SceneDiffRequest", "level", VXD_SVDAG_MAX_DEPTH},
        {"SceneExportRequest", "level", VXD_SVDAG_MAX_DEPTH},
        {"SceneWatchRequest", "level", VXD_SVDAG_MAX_DEPTH},
        {"SceneRenderRequest", "width", VXD_RENDER_MAX_SIDE},
        {"SceneRenderRequest", "height", VXD_RENDER_MAX_SIDE},
        {"TokenIssueRequest", "ttl_s", VXD_TOKEN_MAX_TTL_S},
        {"VolumeRefineRequest", "upsample", VXD_REFINE_MAX_UPSAMPLE},
        {"VolumeTrackRequest", "levels", VXD_TRACK_MAX_LEVELS},
        {"VolumeTrackRequest", "max_pixels", VXD_TRACK_MAX_PIXELS},
        {"VolumeTrackAndIntegrateRequest", "levels", VXD_TRACK_MAX_LEVELS},
        {"VolumeTrackAndIntegrateRequest", "max_pixels", VXD_TRACK_MAX_PIXELS},
    };
    const struct vxd_field_range *spec = find("MapCreateRequest", "spec");
    const struct vxd_field_range *retention = find("SceneCreateRequest", "retention");

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const struct vxd_field_range *range = find(cases[i].message, cases[i].field);

        CHECK(range != NULL);
        if (range != NULL && range->high != cases[i].limit) {
            CHECK_STR(cases[i].message, cases[i].field);
        }
    }
    REQUIRE(spec != NULL && spec->inner != NULL && spec->inner->n >= 2);
    CHECK_STR(spec->inner->fields[1].name, "n_components");
    CHECK(spec->inner->fields[1].high == VXD_HASHMAP_MAX_COMPONENTS);
    REQUIRE(retention != NULL && retention->inner != NULL && retention->inner->n == 1);
    CHECK(retention->inner->fields[0].high == VXD_SCENE_MAX_VERSIONS);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_number_at_an_end_of_its_range_passes_and_one_beyond_is_refused),
    VXD_TEST(test_end_that_a_range_is_without_is_refused),
    VXD_TEST(test_whole_numbers_and_those_that_are_listed),
    VXD_TEST(test_unknown_word_of_an_enum_is_refused_with_those_that_are_known),
    VXD_TEST(test_field_in_a_list_is_named_by_its_path),
    VXD_TEST(test_request_that_the_table_has_not_passes),
    VXD_TEST(test_limits_of_the_schema_are_the_engines),
};

VXD_TEST_MAIN(tests)
