// SPDX-License-Identifier: Apache-2.0
/* The functions of all methods, as struct vxd_method describes them. */
#ifndef VXD_SERVER_SERVICE_SERVICE_H
#define VXD_SERVER_SERVICE_SERVICE_H

#include "server/service/message.h"
#include "server/request/request.h"

struct vxd_noun_service;
struct vxd_query_calls;

/* The nouns whose list, get and drop are service/noun's, each in NOUN_admin.c of its folder. */
extern const struct vxd_noun_service vxd_map_service;
extern const struct vxd_noun_service vxd_volume_service;
extern const struct vxd_noun_service vxd_posegraph_service;
extern const struct vxd_noun_service vxd_odometry_service;
extern const struct vxd_noun_service vxd_network_service;

/* What is their own of queries by rows (service/columns), each where its check is. */
extern const struct vxd_query_calls vxd_scene_values_query;
extern const struct vxd_query_calls vxd_scene_cast_rays_query;
extern const struct vxd_query_calls vxd_scene_nearest_query;
extern const struct vxd_query_calls vxd_scene_overlap_query;
extern const struct vxd_query_calls vxd_scene_export_query;
extern const struct vxd_query_calls vxd_scene_changed_query;
extern const struct vxd_query_calls vxd_scene_log_odds_at_query;
extern const struct vxd_query_calls vxd_scene_diff_query;
extern const struct vxd_query_calls vxd_scene_distance_query;
extern const struct vxd_query_calls vxd_scene_collide_query;
extern const struct vxd_query_calls vxd_scene_field_query;
extern const struct vxd_query_calls vxd_map_find_query;
extern const struct vxd_query_calls vxd_map_export_query;
extern const struct vxd_query_calls vxd_volume_cast_rays_query;
extern const struct vxd_query_calls vxd_volume_extract_query;
extern const struct vxd_query_calls vxd_volume_watch_query;
extern const struct vxd_query_calls vxd_volume_distance_query;
extern const struct vxd_query_calls vxd_slac_apply_query;

/* service/admin/admin.c */
enum vxd_status vxd_server_info_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_status_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_set_log_level_check(struct vxd_request *request, struct vxd_err *err);

/* service/admin/admin_backup.c */
enum vxd_status vxd_why_check(struct vxd_request *request, struct vxd_err *err);

enum vxd_status vxd_backup_list_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_backup_list_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_backup_drop_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_backup_drop_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_backup_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_backup_submit(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err);
enum vxd_status vxd_backup_finish(struct vxd_request *request, struct vxd_queue *queue,
                                  struct vxd_err *err);

/* service/admin/self_test.c */
enum vxd_status vxd_self_test_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_self_test_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
enum vxd_status vxd_self_test_finish(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
void vxd_self_test_release(struct vxd_request *request, struct vxd_queue *queue);

/* service/token */
enum vxd_status vxd_token_issue_check(struct vxd_request *request, struct vxd_err *err);

/* service/voxelize */
bool vxd_voxelize_changes(const struct vxd_request *request);
enum vxd_status vxd_voxelize_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_voxelize_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err);
enum vxd_status vxd_voxelize_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err);
void vxd_voxelize_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_voxelize_from_file(struct vxd_request *request,
                                       const struct vxd_body *body, struct vxd_err *err);

/* service/map */
enum vxd_status vxd_map_create_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_map_insert_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_map_find_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_map_erase_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_map_update_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_map_export_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_map_save_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_map_load_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_map_create_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_map_insert_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_map_erase_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
enum vxd_status vxd_map_update_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_map_save_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err);
enum vxd_status vxd_map_load_submit(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err);
enum vxd_status vxd_map_create_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_map_insert_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_map_erase_finish(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
enum vxd_status vxd_map_update_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_map_save_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err);
enum vxd_status vxd_map_load_finish(struct vxd_request *request, struct vxd_queue *queue,
                                    struct vxd_err *err);
void vxd_map_release(struct vxd_request *request, struct vxd_queue *queue);

/* service/network */
enum vxd_status vxd_network_load_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_network_load_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_network_load_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
void vxd_network_load_release(struct vxd_request *request, struct vxd_queue *queue);

/* service/infer */
enum vxd_status vxd_infer_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_infer_submit(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err);
enum vxd_status vxd_infer_finish(struct vxd_request *request, struct vxd_queue *queue,
                                 struct vxd_err *err);
void vxd_infer_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_infer_forget(struct vxd_request *request);
enum vxd_status vxd_infer_from_file(struct vxd_request *request,
                                    const struct vxd_body *body, struct vxd_err *err);

/* service/scene and service/integrate */
enum vxd_status vxd_scene_create_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_drop_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_list_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_get_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_edit_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_integrate_check(struct vxd_request *request,
                                          struct vxd_err *err);
enum vxd_status vxd_scene_values_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_cast_rays_check(struct vxd_request *request,
                                          struct vxd_err *err);
enum vxd_status vxd_scene_nearest_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_overlap_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_export_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_log_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_undo_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_decay_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_changed_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_log_odds_at_check(struct vxd_request *request,
                                            struct vxd_err *err);
enum vxd_status vxd_scene_redo_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_snapshot_check(struct vxd_request *request,
                                         struct vxd_err *err);
enum vxd_status vxd_scene_branch_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_diff_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_verify_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_collect_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_log_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
enum vxd_status vxd_scene_undo_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_decay_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_redo_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_snapshot_submit(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_branch_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_verify_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_collect_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_undo_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_decay_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_redo_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_branch_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_verify_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_collect_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_create_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_drop_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_list_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_get_submit(struct vxd_request *request, struct vxd_queue *queue,
                                     struct vxd_err *err);
enum vxd_status vxd_scene_edit_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_integrate_submit(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_create_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_drop_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_edit_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_integrate_finish(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err);
/* Of those whose reply submit has made. */
enum vxd_status vxd_scene_done(struct vxd_request *request, struct vxd_queue *queue,
                               struct vxd_err *err);
enum vxd_status vxd_scene_integrate_from_file(struct vxd_request *request,
                                              const struct vxd_body *body,
                                              struct vxd_err *err);
enum vxd_status vxd_scene_import_mesh_from_file(struct vxd_request *request,
                                                const struct vxd_body *body,
                                                struct vxd_err *err);
void vxd_scene_edit_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_scene_import_mesh_check(struct vxd_request *request,
                                            struct vxd_err *err);
enum vxd_status vxd_scene_import_mesh_submit(struct vxd_request *request,
                                             struct vxd_queue *queue,
                                             struct vxd_err *err);
enum vxd_status vxd_scene_import_mesh_finish(struct vxd_request *request,
                                             struct vxd_queue *queue,
                                             struct vxd_err *err);
void vxd_scene_import_mesh_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_scene_integrate_prerequisite(struct vxd_request *request, bool *waits,
                                                 struct vxd_err *err);
enum vxd_status vxd_scene_integrate_take_prerequisite(struct vxd_request *request,
                                                      const ProtobufCMessage *output,
                                                      struct vxd_err *err);
void vxd_scene_integrate_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_scene_integrate_forget(struct vxd_request *request);
void vxd_scene_release(struct vxd_request *request, struct vxd_queue *queue);

/* service/odometry */
enum vxd_status vxd_odometry_create_check(struct vxd_request *request,
                                          struct vxd_err *err);
enum vxd_status vxd_odometry_create_submit(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_odometry_reset_check(struct vxd_request *request,
                                         struct vxd_err *err);
enum vxd_status vxd_odometry_reset_submit(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_odometry_register_check(struct vxd_request *request,
                                            struct vxd_err *err);
enum vxd_status vxd_odometry_register_submit(struct vxd_request *request,
                                             struct vxd_queue *queue,
                                             struct vxd_err *err);
enum vxd_status vxd_odometry_register_finish(struct vxd_request *request,
                                             struct vxd_queue *queue,
                                             struct vxd_err *err);
enum vxd_status vxd_odometry_register_from_file(struct vxd_request *request,
                                                const struct vxd_body *body,
                                                struct vxd_err *err);
void vxd_odometry_register_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_odometry_release(struct vxd_request *request, struct vxd_queue *queue);
/* service/slac */
bool vxd_slac_optimize_changes(const struct vxd_request *request);
enum vxd_status vxd_slac_optimize_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_slac_optimize_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_slac_optimize_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
void vxd_slac_optimize_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_slac_progress_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_slac_cancel_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_slac_apply_check(struct vxd_request *request, struct vxd_err *err);
void vxd_slac_apply_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_slac_deform_volume_check(struct vxd_request *request,
                                             struct vxd_err *err);
enum vxd_status vxd_slac_deform_volume_submit(struct vxd_request *request,
                                              struct vxd_queue *queue,
                                              struct vxd_err *err);
enum vxd_status vxd_slac_deform_volume_finish(struct vxd_request *request,
                                              struct vxd_queue *queue,
                                              struct vxd_err *err);
void vxd_slac_deform_volume_release(struct vxd_request *request, struct vxd_queue *queue);

/* service/volume */
enum vxd_status vxd_volume_create_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_volume_create_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_create_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_integrate_check(struct vxd_request *request,
                                           struct vxd_err *err);
enum vxd_status vxd_volume_integrate_submit(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_integrate_finish(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_cast_rays_check(struct vxd_request *request,
                                           struct vxd_err *err);
enum vxd_status vxd_volume_extract_check(struct vxd_request *request,
                                         struct vxd_err *err);
enum vxd_status vxd_volume_clear_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_volume_clear_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_clear_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_distance_check(struct vxd_request *request,
                                          struct vxd_err *err);
void vxd_volume_distance_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_volume_render_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_volume_render_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_render_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
void vxd_volume_render_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_volume_stamp_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_volume_stamp_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_stamp_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
void vxd_volume_stamp_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_volume_import_scene_check(struct vxd_request *request,
                                              struct vxd_err *err);
enum vxd_status vxd_volume_import_scene_submit(struct vxd_request *request,
                                               struct vxd_queue *queue,
                                               struct vxd_err *err);
enum vxd_status vxd_volume_import_scene_finish(struct vxd_request *request,
                                               struct vxd_queue *queue,
                                               struct vxd_err *err);
void vxd_volume_import_scene_release(struct vxd_request *request,
                                     struct vxd_queue *queue);
enum vxd_status vxd_volume_decay_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_volume_decay_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_decay_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_copy_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_volume_copy_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_copy_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_track_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_volume_track_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_track_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_track_and_integrate_check(struct vxd_request *request,
                                                     struct vxd_err *err);
enum vxd_status vxd_volume_track_and_integrate_submit(struct vxd_request *request,
                                                      struct vxd_queue *queue,
                                                      struct vxd_err *err);
enum vxd_status vxd_volume_track_and_integrate_finish(struct vxd_request *request,
                                                      struct vxd_queue *queue,
                                                      struct vxd_err *err);
void vxd_volume_track_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_volume_track_forget(struct vxd_request *request);
enum vxd_status vxd_volume_refine_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_volume_refine_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_refine_finish(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
void vxd_volume_refine_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_volume_refine_forget(struct vxd_request *request);
enum vxd_status vxd_volume_refine_status_check(struct vxd_request *request,
                                               struct vxd_err *err);
enum vxd_status vxd_volume_refine_status_submit(struct vxd_request *request,
                                                struct vxd_queue *queue,
                                                struct vxd_err *err);
enum vxd_status vxd_volume_refine_cancel_check(struct vxd_request *request,
                                               struct vxd_err *err);
enum vxd_status vxd_volume_refine_cancel_submit(struct vxd_request *request,
                                                struct vxd_queue *queue,
                                                struct vxd_err *err);
void vxd_volume_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_volume_integrate_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_volume_extract_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_volume_integrate_forget(struct vxd_request *request);
enum vxd_status vxd_volume_integrate_from_file(struct vxd_request *request,
                                               const struct vxd_body *body,
                                               struct vxd_err *err);
enum vxd_status vxd_volume_integrate_points_check(struct vxd_request *request,
                                                  struct vxd_err *err);
enum vxd_status vxd_volume_integrate_points_submit(struct vxd_request *request,
                                                   struct vxd_queue *queue,
                                                   struct vxd_err *err);
enum vxd_status vxd_volume_integrate_points_finish(struct vxd_request *request,
                                                   struct vxd_queue *queue,
                                                   struct vxd_err *err);
void vxd_volume_integrate_points_release(struct vxd_request *request,
                                         struct vxd_queue *queue);
enum vxd_status vxd_volume_integrate_points_from_file(struct vxd_request *request,
                                                      const struct vxd_body *body,
                                                      struct vxd_err *err);
/* service/posegraph */
enum vxd_status vxd_posegraph_create_check(struct vxd_request *request,
                                           struct vxd_err *err);
enum vxd_status vxd_posegraph_create_submit(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_posegraph_add_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_posegraph_add_submit(struct vxd_request *request,
                                         struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_posegraph_solve_check(struct vxd_request *request,
                                          struct vxd_err *err);
enum vxd_status vxd_posegraph_solve_submit(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_posegraph_optimize_check(struct vxd_request *request,
                                             struct vxd_err *err);
enum vxd_status vxd_posegraph_optimize_submit(struct vxd_request *request,
                                              struct vxd_queue *queue,
                                              struct vxd_err *err);
enum vxd_status vxd_posegraph_read_check(struct vxd_request *request,
                                         struct vxd_err *err);
enum vxd_status vxd_posegraph_read_submit(struct vxd_request *request,
                                          struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_posegraph_add_keyframe_check(struct vxd_request *request,
                                                 struct vxd_err *err);
enum vxd_status vxd_posegraph_add_keyframe_submit(struct vxd_request *request,
                                                  struct vxd_queue *queue,
                                                  struct vxd_err *err);
enum vxd_status vxd_posegraph_relocalize_check(struct vxd_request *request,
                                               struct vxd_err *err);
enum vxd_status vxd_posegraph_relocalize_submit(struct vxd_request *request,
                                                struct vxd_queue *queue,
                                                struct vxd_err *err);
enum vxd_status vxd_posegraph_rebuild_check(struct vxd_request *request,
                                            struct vxd_err *err);
enum vxd_status vxd_posegraph_rebuild_submit(struct vxd_request *request,
                                             struct vxd_queue *queue,
                                             struct vxd_err *err);
enum vxd_status vxd_posegraph_rebuild_finish(struct vxd_request *request,
                                             struct vxd_queue *queue,
                                             struct vxd_err *err);
enum vxd_status vxd_posegraph_rebuild_status_check(struct vxd_request *request,
                                                   struct vxd_err *err);
enum vxd_status vxd_posegraph_rebuild_status_submit(struct vxd_request *request,
                                                    struct vxd_queue *queue,
                                                    struct vxd_err *err);
enum vxd_status vxd_posegraph_rebuild_cancel_check(struct vxd_request *request,
                                                   struct vxd_err *err);
enum vxd_status vxd_posegraph_rebuild_cancel_submit(struct vxd_request *request,
                                                    struct vxd_queue *queue,
                                                    struct vxd_err *err);
void vxd_posegraph_rebuild_release(struct vxd_request *request, struct vxd_queue *queue);
enum vxd_status vxd_posegraph_create_finish(struct vxd_request *request,
                                            struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_posegraph_solve_finish(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_posegraph_optimize_finish(struct vxd_request *request,
                                              struct vxd_queue *queue,
                                              struct vxd_err *err);
enum vxd_status vxd_posegraph_relocalize_finish(struct vxd_request *request,
                                                struct vxd_queue *queue,
                                                struct vxd_err *err);
enum vxd_status vxd_posegraph_optimize_prerequisite(struct vxd_request *request,
                                                    bool *waits, struct vxd_err *err);
enum vxd_status vxd_posegraph_optimize_take(struct vxd_request *request,
                                            const ProtobufCMessage *output,
                                            struct vxd_err *err);
enum vxd_status vxd_posegraph_add_keyframe_prerequisite(struct vxd_request *request,
                                                        bool *waits, struct vxd_err *err);
enum vxd_status vxd_posegraph_add_keyframe_take(struct vxd_request *request,
                                                const ProtobufCMessage *output,
                                                struct vxd_err *err);
enum vxd_status vxd_posegraph_relocalize_prerequisite(struct vxd_request *request,
                                                      bool *waits, struct vxd_err *err);
enum vxd_status vxd_posegraph_relocalize_take(struct vxd_request *request,
                                              const ProtobufCMessage *output,
                                              struct vxd_err *err);
void vxd_posegraph_add_forget(struct vxd_request *request);
void vxd_posegraph_optimize_forget(struct vxd_request *request);
void vxd_posegraph_add_keyframe_forget(struct vxd_request *request);
void vxd_posegraph_relocalize_forget(struct vxd_request *request);
void vxd_posegraph_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_posegraph_solve_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_posegraph_add_keyframe_release(struct vxd_request *request,
                                        struct vxd_queue *queue);
void vxd_posegraph_relocalize_release(struct vxd_request *request,
                                      struct vxd_queue *queue);
/* service/field */
enum vxd_status vxd_scene_distance_check(struct vxd_request *request,
                                         struct vxd_err *err);
enum vxd_status vxd_scene_collide_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_field_check(struct vxd_request *request, struct vxd_err *err);
void vxd_field_release(struct vxd_request *request, struct vxd_queue *queue);
/* service/grid; scene_grid's release is that of scenes */
enum vxd_status vxd_scene_grid_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_grid_submit(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_grid_finish(struct vxd_request *request,
                                      struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_frontiers_check(struct vxd_request *request,
                                          struct vxd_err *err);
enum vxd_status vxd_scene_frontiers_submit(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_frontiers_finish(struct vxd_request *request,
                                           struct vxd_queue *queue, struct vxd_err *err);
void vxd_scene_frontiers_release(struct vxd_request *request, struct vxd_queue *queue);
/* service/render */
enum vxd_status vxd_scene_render_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_render_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_render_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
void vxd_scene_render_release(struct vxd_request *request, struct vxd_queue *queue);
/* service/watch */
enum vxd_status vxd_scene_watch_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_scene_watch_prerequisite(struct vxd_request *request, bool *waits,
                                             struct vxd_err *err);
enum vxd_status vxd_scene_watch_submit(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_scene_watch_finish(struct vxd_request *request,
                                       struct vxd_queue *queue, struct vxd_err *err);
void vxd_scene_watch_forget(struct vxd_request *request);
enum vxd_status vxd_volume_watch_check(struct vxd_request *request, struct vxd_err *err);
enum vxd_status vxd_volume_watch_prerequisite(struct vxd_request *request, bool *waits,
                                              struct vxd_err *err);
enum vxd_status vxd_volume_watch_submit(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
enum vxd_status vxd_volume_watch_finish(struct vxd_request *request,
                                        struct vxd_queue *queue, struct vxd_err *err);
void vxd_volume_watch_forget(struct vxd_request *request);
void vxd_volume_watch_release(struct vxd_request *request, struct vxd_queue *queue);
void vxd_watch_unpark_request(struct vxd_request *request);

#endif
