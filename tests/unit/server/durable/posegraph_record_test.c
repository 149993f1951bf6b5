// SPDX-License-Identifier: Apache-2.0
/* Records of pose graphs: what is read is what was written; what is cut off or damaged is said to be
 * so; and a graph takes a change as a whole or not at all. */
#include "server/durable/record/posegraph_record.h"

#include "server/registry/posegraphs/posegraph_content.h"
#include "tests/support/test.h"

static const struct vxd_rigid here = {{1, 2, 3}, {0, 0, 0, 1}};

struct inputs {
    struct vxd_posegraph_record_node nodes[3];
    struct vxd_posegraph_edge edge;
    struct vxd_posegraph_prior prior;
    struct vxd_posegraph_record_keyframe keyframe;
    float points[6];
    float descriptor[2];
};

static struct vxd_posegraph_record make(struct inputs *in)
{
    struct vxd_posegraph_record record = {.kind = VXD_POSEGRAPH_RECORD_ADD,
                                          .unix_ns = -5,
                                          .author = "ann",
                                          .client = "robot",
                                          .n_nodes = 3,
                                          .n_edges = 1,
                                          .n_priors = 1,
                                          .n_keyframes = 1};

    *in = (struct inputs){.points = {1, 2, 3, 4, 5, 6}, .descriptor = {7, 8}};
    for (unsigned i = 0; i < 3; i++) {
        in->nodes[i] = (struct vxd_posegraph_record_node){
            .id = 100 * i, .T_map_node = here, .stamp_ns = -7, .fixed = i == 1};
    }
    in->edge = (struct vxd_posegraph_edge){
        .from = 0, .to = 2, .T_from_to = here, .robust = VXD_POSEGRAPH_DCS, .width = 2.5};
    in->prior = (struct vxd_posegraph_prior){.node = 1, .T_map_node = here};
    for (int i = 0; i < 6; i++) {
        in->edge.information[7 * i] = i + 1;
        in->prior.information[7 * i] = i < 3 ? 4 : 0;
    }
    in->keyframe = (struct vxd_posegraph_record_keyframe){.node = 2,
                                                          .n_points = 2,
                                                          .points = in->points,
                                                          .n_descriptor = 2,
                                                          .descriptor = in->descriptor};
    record.nodes = in->nodes;
    record.edges = &in->edge;
    record.priors = &in->prior;
    record.keyframes = &in->keyframe;
    return record;
}

static struct vxd_posegraph_record make_poses(const struct vxd_rigid poses[3])
{
    return (struct vxd_posegraph_record){.kind = VXD_POSEGRAPH_RECORD_POSES,
                                         .unix_ns = 9,
                                         .version = 2,
                                         .cost = 1.5,
                                         .n_poses = 3,
                                         .poses = poses};
}

static void check_edge(const struct vxd_posegraph_edge *edge,
                       const struct vxd_posegraph_edge *right)
{
    CHECK_INT(edge->from, right->from);
    CHECK_INT(edge->to, right->to);
    CHECK(memcmp(&edge->T_from_to, &right->T_from_to, sizeof edge->T_from_to) == 0);
    CHECK(memcmp(edge->information, right->information, sizeof edge->information) == 0);
    CHECK_INT(edge->robust, right->robust);
    CHECK(edge->width == right->width);
}

static void test_record_reads_as_it_was_written(void)
{
    struct inputs in;
    const struct vxd_rigid poses[3] = {here, here, here};

    for (int kind = 0; kind < 2; kind++) {
        struct vxd_posegraph_record record = kind == 0 ? make(&in) : make_poses(poses);
        struct vxd_posegraph_record_decoded decoded;
        struct vxd_record_bytes bytes;
        struct vxd_record_bytes again;
        struct vxd_err err;

        REQUIRE(vxd_posegraph_record_encode(&record, &bytes, &err) == VXD_OK);
        REQUIRE(vxd_posegraph_record_decode(bytes.bytes, bytes.n_bytes,
                                            VXD_POSEGRAPH_RULES_VERSION, 0, &decoded,
                                            &err) == VXD_OK);
        CHECK_STR(decoded.record.author, record.author);
        CHECK_INT(decoded.record.unix_ns, record.unix_ns);
        if (kind == 0) {
            check_edge(&decoded.record.edges[0], &in.edge);
            CHECK(memcmp(decoded.record.keyframes[0].points, in.points,
                         sizeof in.points) == 0);
            CHECK(decoded.record.nodes[1].fixed && decoded.record.nodes[2].id == 200);
        }
        REQUIRE(vxd_posegraph_record_encode(&decoded.record, &again, &err) == VXD_OK);
        CHECK(again.n_bytes == bytes.n_bytes &&
              memcmp(again.bytes, bytes.bytes, bytes.n_bytes) == 0);
        vxd_posegraph_record_decoded_free(&decoded);
        for (size_t n = 0; n < bytes.n_bytes; n++) {
            CHECK_INT(vxd_posegraph_record_decode(
                          bytes.bytes, n, VXD_POSEGRAPH_RULES_VERSION, 0, &decoded, &err),
                      VXD_DATA_LOSS);
        }
        CHECK_INT(vxd_posegraph_record_decode(bytes.bytes, bytes.n_bytes,
                                              VXD_POSEGRAPH_RULES_VERSION + 1, 0,
                                              &decoded, &err),
                  VXD_FAILED_PRECONDITION);
        CHECK_INT(vxd_posegraph_record_decode(bytes.bytes, bytes.n_bytes,
                                              VXD_POSEGRAPH_RULES_VERSION, 64, &decoded,
                                              &err),
                  VXD_RESOURCE_EXHAUSTED);
        vxd_record_bytes_free(&bytes);
        vxd_record_bytes_free(&again);
    }
}

static void test_refused_change_leaves_the_graph_as_it_was(void)
{
    struct vxd_posegraph_content content = {0};
    struct inputs in;
    struct vxd_posegraph_record record = make(&in);
    struct vxd_rigid poses[3] = {here, here, here};
    struct vxd_posegraph_record made = make_poses(poses);
    struct vxd_err err;

    REQUIRE(vxd_posegraph_apply(&content, &record, &err) == VXD_OK);
    CHECK_INT(content.n_nodes, 3);
    CHECK_INT(vxd_posegraph_find(&content, 200), 2);
    CHECK_INT(vxd_posegraph_find(&content, 300), UINT32_MAX);
    CHECK_INT(vxd_posegraph_apply(&content, &record, &err), VXD_ALREADY_EXISTS);
    record.n_nodes = 0;
    CHECK_INT(vxd_posegraph_apply(&content, &record, &err), VXD_ALREADY_EXISTS);
    CHECK(strstr(err.message, "keyframe") != NULL);
    record.n_keyframes = 0;
    in.edge.to = 3;
    CHECK_INT(vxd_posegraph_apply(&content, &record, &err), VXD_INVALID_ARGUMENT);
    in.edge.to = 2;
    in.prior.node = 3;
    CHECK_INT(vxd_posegraph_apply(&content, &record, &err), VXD_INVALID_ARGUMENT);
    CHECK(content.n_edges == 1 && content.n_priors == 1 && content.n_keyframes == 1);
    made.n_poses = 3;
    made.version = 1;
    CHECK_INT(vxd_posegraph_apply(&content, &made, &err), VXD_FAILED_PRECONDITION);
    for (uint64_t version = 2; version < 40; version++) {
        made.version = version;
        CHECK_INT(vxd_posegraph_apply(&content, &made, &err), VXD_OK);
    }
    CHECK_INT(content.n_versions, VXD_POSEGRAPH_VERSIONS);
    CHECK(vxd_posegraph_find_version(&content, 1) == NULL);
    CHECK(vxd_posegraph_find_version(&content, 39) ==
          vxd_posegraph_find_version(&content, 0));
    vxd_posegraph_content_clear(&content);
    CHECK_INT(content.n_bytes, 0);
}

static const struct vxd_test tests[] = {
    VXD_TEST(test_record_reads_as_it_was_written),
    VXD_TEST(test_refused_change_leaves_the_graph_as_it_was),
};

VXD_TEST_MAIN(tests)
