// SPDX-License-Identifier: Apache-2.0
/* The readers of each format, and what they share; private to client/files.
 *
 * Every parse function has the contract of vxd_cloud_file_parse without the format,
 * except that on failure *out may be half filled: the caller clears it. *out starts
 * empty. */
#ifndef VXD_CLIENT_FILES_READER_H
#define VXD_CLIENT_FILES_READER_H

#include "client/files/files.h"

/* Limits on a line of a text header, and on a text header as a whole. */
#define VXD_FILE_MAX_LINE_BYTES 8192
#define VXD_FILE_MAX_HEADER_BYTES 262144

enum vxd_status vxd_npy_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err);
enum vxd_status vxd_npz_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err);
enum vxd_status vxd_ply_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err);
enum vxd_status vxd_pcd_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err);
enum vxd_status vxd_las_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                              struct vxd_cloud_file *out, struct vxd_err *err);
enum vxd_status vxd_kitti_parse(const uint8_t *bytes, size_t n_bytes, size_t budget_bytes,
                                struct vxd_cloud_file *out, struct vxd_err *err);
enum vxd_status vxd_nuscenes_parse(const uint8_t *bytes, size_t n_bytes,
                                   size_t budget_bytes, struct vxd_cloud_file *out,
                                   struct vxd_err *err);

/* True when the .npy file that begins here (its first n_bytes at least, or all of it)
 * holds a numeric N x C array, 3 <= C <= 64, or records with x, y and z. */
bool vxd_npy_is_cloud(const uint8_t *bytes, size_t n_bytes);

/* Undoes LZF: exactly n_out bytes into `out` from exactly n_in bytes. False on anything
 * else; never reads or writes outside either. */
bool vxd_lzf_decompress(const uint8_t *in, size_t n_in, uint8_t *out, size_t n_out);

/* Packs n_in < UINT32_MAX bytes by LZF into at most VXD_LZF_BOUND(n_in) bytes at
 * `out`; *n_out is how many. False when there is no memory for the table of matches. */
#define VXD_LZF_BOUND(n_in) ((n_in) + (n_in) / 32 + 1)
bool vxd_lzf_compress(const uint8_t *in, size_t n_in, uint8_t *out, size_t *n_out);

/* Fails with the file as the field: INVALID_ARGUMENT, "FORMAT: what". */
#define VXD_FILE_BAD(err, ...) vxd_fail((err), VXD_INVALID_ARGUMENT, "file", __VA_ARGS__)

/* Appends a field; a name already there, too long, empty or not printable, and a 65th field
 * are INVALID_ARGUMENT. */
enum vxd_status vxd_file_add_field(struct vxd_cloud_file *file, const char *name,
                                   size_t n_name, size_t offset, enum vxd_dtype dtype,
                                   struct vxd_err *err);

/* Allocates within a budget, from which it subtracts the bytes. RESOURCE_EXHAUSTED
 * beyond it. */
enum vxd_status vxd_file_alloc(size_t *budget_bytes, size_t n_bytes, uint8_t **out,
                               struct vxd_err *err);

/* Reverses the bytes of every field of every record, in place. */
void vxd_file_swap_fields(const struct vxd_cloud_file *file, uint8_t *records);

/* Copies big-endian records at `data` into memory of our own as little-endian ones,
 * and sets data and owned. */
enum vxd_status vxd_file_own_swapped(struct vxd_cloud_file *file, const uint8_t *data,
                                     size_t *budget_bytes, struct vxd_err *err);

/* A position in a file that is read as text. */
struct vxd_text_cursor {
    const uint8_t *bytes;
    size_t n_bytes;
    size_t at;
    size_t line; /* of `at`, from 1 */
};

/* Takes the next line without its end ("\n" or "\r\n"); false at the end of the file,
 * or where a line is longer than VXD_FILE_MAX_LINE_BYTES. */
bool vxd_cursor_line(struct vxd_text_cursor *cursor, const char **line, size_t *n);

/* Takes the next run of non-blank bytes, across lines; false at the end of the file. */
bool vxd_cursor_token(struct vxd_text_cursor *cursor, const char **token, size_t *n);

/* Takes the next word of a line; false when there is none. */
bool vxd_line_word(const char **line, size_t *n_line, const char **word, size_t *n_word);

/* Whether the word is exactly this text. */
bool vxd_word_is(const char *word, size_t n_word, const char *text);

/* Records written as text, one after the other, columns separated by blanks. */
struct vxd_text_column {
    size_t offset;
    size_t n; /* tokens; those of a skipped column are not stored */
    enum vxd_dtype dtype;
    bool stored;
};

/* Reads file->n_points records of file->point_step bytes from text into memory of our
 * own. Before it allocates it checks that the file is long enough for so many tokens. */
enum vxd_status vxd_file_read_text(struct vxd_cloud_file *file, const char *format,
                                   struct vxd_text_cursor *cursor,
                                   const struct vxd_text_column *columns,
                                   size_t n_columns, size_t *budget_bytes,
                                   struct vxd_err *err);

#endif
