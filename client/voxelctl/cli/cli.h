// SPDX-License-Identifier: Apache-2.0
/* What voxelctl's commands share. */
#ifndef VXD_CLIENT_VOXELCTL_CLI_CLI_H
#define VXD_CLIENT_VOXELCTL_CLI_CLI_H

#include <getopt.h>
#include <stdio.h>

#include "client/c/include/voxeld.h"
#include "client/files/files.h"
#include "proto/base/base.h"

/* Exit status of the process. */
enum {
    CTL_OK = 0,
    CTL_FAILED = 1, /* the request, the connection or a file; the message says which */
    CTL_USAGE = 2
};

/* Options that every subcommand takes. The caller zeroes it and calls
 * ctl_globals_defaults. */
struct ctl_globals {
    struct voxeld_options options;
    bool json;
    const char *request; /* of --request; NULL: none */
    char token[1024];    /* from --token-file */
    char texts[4][1024]; /* from the user's defaults */
};

/* Ids of the shared options, above any character. */
enum {
    CTL_OPT_URL = 256,
    CTL_OPT_TOKEN_FILE,
    CTL_OPT_TIMEOUT,
    CTL_OPT_TIMEOUT_MS,
    CTL_OPT_CA_FILE,
    CTL_OPT_CERT_FILE,
    CTL_OPT_KEY_FILE,
    CTL_OPT_JSON,
    CTL_OPT_HELP,
    CTL_OPT_VERSION,
    CTL_OPT_REQUEST, /* of commands that are one call */
    CTL_OPT_FIRST_OWN
};

/* Every subcommand's list of long options begins with these. */
#define CTL_GLOBAL_OPTIONS                                                               \
    {"url", required_argument, NULL, CTL_OPT_URL},                                       \
        {"token-file", required_argument, NULL, CTL_OPT_TOKEN_FILE},                     \
        {"timeout", required_argument, NULL, CTL_OPT_TIMEOUT},                           \
        {"timeout-ms", required_argument, NULL, CTL_OPT_TIMEOUT_MS},                     \
        {"ca-file", required_argument, NULL, CTL_OPT_CA_FILE},                           \
        {"cert-file", required_argument, NULL, CTL_OPT_CERT_FILE},                       \
        {"key-file", required_argument, NULL, CTL_OPT_KEY_FILE},                         \
        {"json", no_argument, NULL, CTL_OPT_JSON}, {"help", no_argument, NULL, 'h'},     \
    {                                                                                    \
        "version", no_argument, NULL, CTL_OPT_VERSION                                    \
    }

struct ctl_command {
    const char *name;
    const char *summary;
    const char *help; /* the whole manual of the subcommand */
    /* argv[0] is the subcommand's name. Returns what the process ends with. */
    int (*run)(struct ctl_globals *globals, int argc, char **argv);
};

/* defaults.c --------------------------------------------------------------------------- */

/* Takes the user's defaults from $XDG_CONFIG_HOME/voxeld.json, else ~/.config/voxeld.json, where there is
 * one. CTL_FAILED after a message. */
int ctl_globals_defaults(struct ctl_globals *globals);

/* words.c ------------------------------------------------------------------------------ */

/* Moves options before words, so that words may be negative numbers; what follows "--" stays behind.
 * Returns the last option where it lacks its value, else NULL. */
const char *ctl_words_last(int argc, char **argv, const struct option *options);

/* Takes the next option of the command line as getopt_long does, in optarg and optind; -1: the words
 * begin at argv[optind]; '?' after a message. Where optind is 0 it begins anew. */
int ctl_next_option(const char *command, int argc, char **argv,
                    const struct option *options);

/* report.c ----------------------------------------------------------------------------- */

/* Whether what goes wrong is reported as JSON. */
void ctl_report_as_json(bool json);

/* Reports a word that is no subcommand, and which of them, "create drop", it may have been meant to be.
 * Returns CTL_USAGE. */
int ctl_no_subcommand(const char *command, const char *word, const char *const *names,
                      size_t n);

/* Reports that something local failed: "FILE: why". Returns CTL_FAILED. */
#if defined(__GNUC__)
__attribute__((format(printf, 1, 2)))
#endif
int ctl_error(const char *format, ...);

/* Reports that a local file cannot be read, and why. Returns CTL_FAILED. */
int ctl_cannot_read(const char *path, const char *why);

/* Reports that a part of voxelctl, "voxelctl bench", failed, and how to mend that ("" = unknown).
 * Returns CTL_FAILED. */
int ctl_error_of(const char *who, const char *message, const char *help);

/* style.c ------------------------------------------------------------------------------ */

enum ctl_style {
    CTL_PLAIN, /* ends the others */
    CTL_BOLD,
    CTL_DIM,
    CTL_RED,
    CTL_GREEN,
    CTL_YELLOW,
    CTL_BLUE
};

/* The escape sequence of a style; "" where the stream is no terminal, or NO_COLOR is set. */
const char *ctl_style(FILE *stream, enum ctl_style style);

enum {
    CTL_NUMBER_BYTES = 32,
    CTL_TABLE_COLUMNS = 16
};

/* Write 1234567 as "1.2 MB", and 5400 s as "90 min"; text has CTL_NUMBER_BYTES. Return text. */
const char *ctl_bytes(uint64_t n, char *text);
const char *ctl_duration(double seconds, char *text);

/* A table on standard output, whose columns are as wide as their widest cells. */
struct ctl_table {
    FILE *text; /* NULL: there is no memory */
    char *cells;
    size_t n_bytes;
    size_t n_columns;
};

/* Begins a table with headers "name|>voxels|owner"; the cells of columns with ">" end below each other. */
void ctl_table_begin(struct ctl_table *table, const char *headers);
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
void ctl_table_cell(struct ctl_table *table, const char *format, ...);
/* Prints it and frees its memory. */
void ctl_table_end(struct ctl_table *table);

/* args.c ------------------------------------------------------------------------------- */

/* Takes one shared option. CTL_OK, or CTL_USAGE or CTL_FAILED after a message. */
int ctl_global_option(struct ctl_globals *globals, int id, const char *value);

/* Handles what getopt_long gave for -h, --version, an unknown option ('?') and the
 * shared options. True when the subcommand is to end with *result. */
bool ctl_common_option(struct ctl_globals *globals, const struct ctl_command *command,
                       int id, const char *value, int *result);

/* Parses argv for a subcommand without options of its own, and checks that n_min to
 * n_max words follow, which begin at argv[optind]. True when the subcommand is to end. */
bool ctl_plain_options(struct ctl_globals *globals, const struct ctl_command *command,
                       int argc, char **argv, int n_min, int n_max, int *result);

/* Prints "voxelctl COMMAND: ..." and how to get help. Returns CTL_USAGE. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int ctl_usage(const char *command, const char *format, ...);

/* As ctl_usage, where a command has too many words beside its options or fewer than n_min: it shows how
 * the command is used. */
int ctl_wrong_words(const struct ctl_command *command, size_t n, size_t n_min);

/* Prints what went wrong with a request, and what to do where that is known. Returns CTL_FAILED. */
int ctl_failed(const char *what, const struct voxeld_error *error);

/* As that, with what to do ("" = unknown). */
int ctl_failed_with(const char *what, const struct voxeld_error *error, const char *help);

/* Parses numbers separated by commas, all finite. Returns how many, 0 for anything
 * else and for a list longer than max. */
size_t ctl_parse_doubles(const char *text, double *out, size_t max);

/* Parses a whole number in low .. high. */
bool ctl_parse_u32(const char *text, uint32_t low, uint32_t high, uint32_t *out);

/* The word of an enumerator: words[at], or "?" of one that is not known. */
const char *ctl_word(const char *const *words, size_t n, size_t at);

/* Prints 1234567 as "1,234,567"; text has at least 32 bytes. Returns text. */
const char *ctl_thousands(uint64_t n, char *text);

/* Connects as the options say; NULL after a message. */
struct voxeld_client *ctl_connect(const struct ctl_globals *globals);

/* Print the outcome of dropping one, and what all of them together take, as text or
 * JSON. The second ends the JSON object that holds their list; what is "maps", say. */
void ctl_print_dropped(const struct ctl_globals *globals, bool existed, const char *name);
/* The first with other words than "dropped" and "there is no". */
void ctl_print_gone(const struct ctl_globals *globals, bool existed, const char *name,
                    const char *gone, const char *none);
void ctl_print_total(const struct ctl_globals *globals, size_t n, const char *what,
                     uint64_t n_bytes, uint64_t limit_bytes);

/* Flushes standard output; CTL_FAILED, with a message, when it did not take everything. */
int ctl_flush(void);

/* own_options.c ------------------------------------------------------------------------ */

enum {
    CTL_MAX_OWN = 128 /* a bit each */
};

/* Sets of options. */
__extension__ typedef unsigned __int128 ctl_bits;

/* An option; its number is CTL_OPT_FIRST_OWN plus its place in the list. */
struct ctl_own_option {
    const char *name;
    const char *right; /* describes valid values, or for a flag where it may stand */
    bool is_flag;      /* it has no value */
};

/* What an option means beside others. */
struct ctl_relation {
    ctl_bits option;   /* its bit */
    ctl_bits needs;    /* the bit of an option that must be given, too; 0 = none */
    ctl_bits excludes; /* the bit of one that must not */
};

/* The manual of a noun's subcommand, and what its command line may be. */
struct ctl_manual {
    struct ctl_command command; /* .run unused */
    ctl_bits options;           /* a bit for each that it takes, and ... */
    ctl_bits required;          /* ... must have */
    size_t n_min;               /* words after the options */
    size_t n_max;
    const char *method; /* NULL: the command takes no --request */
    bool changes;       /* the method changes something */
};

struct ctl_own_options {
    const struct ctl_own_option *known;
    size_t n_known;
    const struct ctl_relation *relations;
    size_t n_relations;
    ctl_bits taken;    /* a bit for each that this subcommand has, and ... */
    ctl_bits required; /* ... must have */
    size_t n_min;      /* words after the options */
    size_t n_max;
    bool takes_request;
    /* Takes an option that was given; false where its value is invalid, or it may not
     * stand there. */
    bool (*take)(void *args, int id, const char *value);
    void *args;
};

/* Parses argv; the words begin at argv[optind], and there are none with --request. True when the
 * subcommand is to end with *result, after a message. */
bool ctl_take_own_options(struct ctl_globals *globals, const struct ctl_command *command,
                          const struct ctl_own_options *own, int argc, char **argv,
                          int *result);

/* Parse values of options; false where they are invalid. */
bool ctl_parse_u64(const char *text, uint64_t *out);
bool ctl_parse_between(const char *text, double low, double high, double *out);
/* Parses one edge for all axes, or three, each > 0. */
bool ctl_parse_size(const char *text, double size_m[3]);
/* Parses a box of six numbers: its low and its high corner. */
bool ctl_parse_box(const char *text, struct voxeld_scene_box *out);
enum {
    CTL_MAX_BOXES = 32
};

/* Boxes of a robot's body. */
struct ctl_boxes {
    struct voxeld_body_box boxes[CTL_MAX_BOXES];
    size_t n;
};
/* Parses boxes of six numbers each, one behind the other, each low below its high. */
bool ctl_parse_boxes(const char *text, struct ctl_boxes *out);

/* A robot's body with its boxes. */
struct ctl_body {
    struct ctl_boxes boxes;
    struct voxeld_body body; /* has those */
};
/* Makes it of such a text; CTL_USAGE after a message, where it is none. */
int ctl_read_body(const char *command, const char *text, struct ctl_body *out);
/* Parses one number, or LOW,HIGH. */
bool ctl_parse_band(const char *text, double out[2]);
/* Parses a version, which is all digits, or the name of a snapshot. */
bool ctl_parse_at(const char *text, struct voxeld_scene_at *out);

/* Parses the low corner and then the high one, or low and high for all axes, each low below its high. */
bool ctl_parse_corners(const char *text, double out[6]);
/* Parses WIDTHxHEIGHT, each 1 to `most`. */
bool ctl_parse_pixels(const char *text, uint32_t most, uint32_t out[2]);
/* Parses names separated by commas, of those of which the last is NULL, to a bit each, from the lowest
 * on. */
bool ctl_parse_set(const char *text, const char *const *names, uint32_t *bits);
/* Finds the text among the names, the last of which is NULL; -1 = none. */
int ctl_parse_choice(const char *text, const char *const *names);
/* Parses always, everysec, off to VOXELD_FSYNC_..., VOXELD_MAP_FSYNC_...; -1 = none. */
int ctl_parse_fsync(const char *text);

/* lists.c ------------------------------------------------------------------------------- */

enum {
    CTL_MAX_NAMES = 64,
    CTL_MAX_LISTED = 16, /* options that may be given several times */
    CTL_NAMES_BYTES = 4096,
    CTL_NAME_BYTES = 64
};

/* A scene as the command line names it: NAME, NAME@VERSION or NAME@SNAPSHOT, taken apart. */
struct ctl_place {
    char name[CTL_NAME_BYTES];
    bool has_at;
    struct voxeld_scene_at at; /* borrows from the text */
};
bool ctl_parse_place(const char *text, struct ctl_place *out);
/* CTL_USAGE after a message where a command's word is none. */
int ctl_check_place(const char *command, const char *word);

/* Names separated by commas; they point into text. */
struct ctl_names {
    char text[CTL_NAMES_BYTES];
    const char *names[CTL_MAX_NAMES];
    size_t n;
};
bool ctl_parse_names(struct ctl_names *names, const char *text);

/* Value arrays, each given as NAME:DTYPE or NAME:DTYPE:ELEMENTS. */
struct ctl_specs {
    struct voxeld_map_array specs[CTL_MAX_LISTED];
    char names[CTL_MAX_LISTED][CTL_NAME_BYTES];
    size_t n;
};
bool ctl_add_spec(struct ctl_specs *specs, const char *text);

/* Texts that must have a certain character in them. */
struct ctl_texts {
    const char *texts[CTL_MAX_LISTED];
    size_t n;
};
bool ctl_add_text(struct ctl_texts *texts, const char *text, char must_have);

/* Options whose order counts, each with its value; the caller frees `steps`. */
struct ctl_step {
    int option;
    const char *value; /* NULL: it has none */
};
struct ctl_steps {
    struct ctl_step *steps;
    size_t n;
};
/* False without memory. */
bool ctl_add_step(struct ctl_steps *steps, int option, const char *value);

/* palette.c ---------------------------------------------------------------------------- */

enum {
    CTL_MAX_PALETTE = 256
};

/* Materials of a scene, by number. */
struct ctl_palette {
    struct voxeld_scene_material materials[CTL_MAX_PALETTE];
    char names[CTL_MAX_PALETTE][CTL_NAME_BYTES];
    size_t n;
};
/* Adds NAME:RRGGBB, whose name may be empty, or the classes of "semantickitti". */
bool ctl_add_material(struct ctl_palette *palette, const char *text);

/* json.c ------------------------------------------------------------------------------- */

/* Writes s as a JSON string; bytes that are no UTF-8 become U+FFFD. */
void ctl_json_string(FILE *stream, const char *s);

/* Writes a number that reads back as the same double; null where it is not finite. */
void ctl_json_number(FILE *stream, double value);

/* Write "name": and a value, after a comma unless it is the first. */
void ctl_json_member_string(FILE *stream, bool first, const char *name, const char *s);
void ctl_json_member_number(FILE *stream, bool first, const char *name, double value);
void ctl_json_member_count(FILE *stream, bool first, const char *name, uint64_t n);
enum {
    CTL_DATE_BYTES = 32
};

/* Writes a time as "2026-11-27T12:00:00Z"; "?" where it has no date. Returns text. */
const char *ctl_date(int64_t unix_ns, char *text);

/* Writes an array of strings. */
void ctl_json_member_strings(FILE *stream, bool first, const char *name,
                             const char *const *strings, size_t n);
/* Writes 16 hexadecimal digits as a string: not every reader keeps numbers of 64 bits. */
void ctl_json_member_digest(FILE *stream, bool first, const char *name, uint64_t digest);
/* Writes a time as ctl_date does. */
void ctl_json_member_date(FILE *stream, bool first, const char *name, int64_t unix_ns);
/* Writes three numbers as an array. */
void ctl_json_member_vec3(FILE *stream, bool first, const char *name, const double v[3]);
/* Writes {"translation": [x, y, z], "rotation": [x, y, z, w]}. */
void ctl_json_member_pose(FILE *stream, bool first, const char *name,
                          const struct voxeld_pose *pose);
/* Writes names[i], "?" where there are only n. */
void ctl_json_member_choice(FILE *stream, bool first, const char *name,
                            const char *const *names, size_t n, size_t i);

/* progress.c --------------------------------------------------------------------------- */

/* Draws "[#####     ] 3/12 name" over the line before it, on standard error and only when
 * that is a terminal and total > 1. */
void ctl_progress_show(size_t n_done, size_t total, const char *name);

/* Erases the bar, before anything else is printed. */
void ctl_progress_clear(size_t total);

/* Shows on a terminal that a call takes long; voxeld_options.waiting. */
void ctl_progress_waiting(void *user, uint32_t waited_ms, uint32_t timeout_ms);

/* Shows on a terminal that work of this process takes longer than a second, "| reading scan.las, 3 s",
 * until its end; path "-" is the standard stream. NULL, which the end takes, where nothing is to be
 * shown: standard error is no terminal, or what is read comes from one. */
struct ctl_progress;
struct ctl_progress *ctl_progress_begin_reading(const char *path);
struct ctl_progress *ctl_progress_begin_writing(const char *path);
void ctl_progress_end(struct ctl_progress *progress);

/* As ctl_read_cloud; CTL_FAILED after a message. */
int ctl_read_cloud_file(const char *path, const char *format, struct voxeld_cloud **out);

/* As voxeld_cloud_read_file, with that. */
enum voxeld_status ctl_read_cloud(const char *path, const char *format,
                                  struct voxeld_cloud **out, struct voxeld_error *error);

/* drive.c ------------------------------------------------------------------------------ */

#define CTL_DRIVE_RETRY_S 10.0 /* when --retry is not given */

/* The files of a drive, a cloud each. */
struct ctl_drive {
    const char *const *paths;
    size_t n;
    const char *format;              /* of all; NULL = by their endings */
    const struct voxeld_pose *poses; /* n; NULL = the files' own */
    const struct voxeld_body *body;  /* of all; NULL = none */
    double retry_s;
    const char *if_missing; /* what to do where the noun does not exist; NULL = unknown */
    /* Makes one call with the options `call`, which changes something once. */
    enum voxeld_status (*send)(void *user, const struct voxeld_call *call,
                               const struct voxeld_cloud *cloud,
                               struct voxeld_error *error);
    void *user;
};

/* Sends all files that can be read, and repeats calls that got no answer. CTL_FAILED,
 * after a message, if one of them failed. */
int ctl_drive_send(const struct ctl_drive *drive);

/* out_file.c --------------------------------------------------------------------------- */

/* Writes to an open file; fills *err on failure. */
typedef enum vxd_status ctl_write_fn(FILE *file, void *context, struct vxd_err *err);

/* Writes a file under another name, which then takes this one's place, so that readers
 * always see a whole file. A device, a pipe or a link is written to directly.
 * CTL_FAILED after a message. */
int ctl_write_file(const char *path, ctl_write_fn *write, void *context);

/* arrays.c ----------------------------------------------------------------------------- */

/* The name of a type, "float32"; "?" where it is none. Static. */
const char *ctl_dtype_name(enum voxeld_dtype dtype);
/* The type whose name the n characters are; false where they are none. */
bool ctl_parse_dtype(const char *text, size_t n, enum voxeld_dtype *out);

/* Whether the path ends in .npy or .npz. */
bool ctl_is_array_file(const char *path);

/* Whether the path ends in this and has more before it. */
bool ctl_has_ending(const char *path, const char *ending);

/* Reads a whole file ("-": standard input); the caller frees *out. CTL_FAILED after a message. */
int ctl_read_file(const char *path, uint8_t **out, size_t *n_bytes);

enum {
    CTL_ROW_NUMBERS = 10 /* of one row on the command line at most */
};

/* An array of a file and the bytes it lies in. */
struct ctl_array {
    struct vxd_array_file array;
    uint8_t *bytes;
};

/* Reads FILE.npy, or any other file as text ("-": standard input as text). Text becomes
 * text_dtype. CTL_FAILED after a message; the caller clears *out in either case. */
int ctl_array_read(const char *path, enum voxeld_dtype text_dtype, struct ctl_array *out);
void ctl_array_clear(struct ctl_array *array);

/* The array as libvoxeld takes it; it borrows the bytes. */
struct voxeld_array ctl_array_view(const struct ctl_array *array, const char *name);

/* The rows of a file, or one row of the command line. */
struct ctl_rows {
    struct ctl_array file;
    double numbers[CTL_ROW_NUMBERS];
    int64_t integers[CTL_ROW_NUMBERS];
    struct voxeld_array array; /* what libvoxeld takes; borrows from the others */
};

/* Reads three numbers or more with commas as one row, any other word as a file of rows. whole: numbers
 * that are no .npy file's are integers. CTL_FAILED after a message; the caller clears *out in either
 * case. */
int ctl_rows_read(const char *word, bool whole, struct ctl_rows *out);
void ctl_rows_clear(struct ctl_rows *rows);

/* How many of n rows are printed: none of those that go to a file, else the first. */
size_t ctl_rows_printed(size_t n, bool to_file);

enum {
    CTL_MAX_WRITTEN = 19 /* arrays of one file */
};

/* Writes arrays as .npy (the first) or .npz, by the path's ending. CTL_FAILED after a message. */
int ctl_write_arrays(const char *path, const struct voxeld_array *arrays, size_t n);

/* poses.c ------------------------------------------------------------------------------ */

/* Reads one pose: a 4 x 4 (or 3 x 4) matrix of numbers. CTL_FAILED after a message. */
int ctl_read_pose(const char *path, struct voxeld_pose *out);

/* Reads a pose for each of n_poses clouds, from the sensor's frame to the map's, a line each: the 12
 * numbers of a matrix's upper rows (KITTI's odometry), all 16 of it, or TUM's 8 (time, position, quaternion).
 * The caller frees *out. CTL_FAILED after a message. */
int ctl_read_poses(const char *path, size_t n_poses, struct voxeld_pose **out);

/* become.c ----------------------------------------------------------------------------- */

/* Finds the folder that voxelctl itself lies in, with a slash at its end. False after a message. */
bool ctl_own_folder(const char *who, char *path, size_t n_path);

/* Becomes the first of the programs at `places`, seen from voxelctl's folder, with the
 * words (words[0] is its name, NULL after the last). Returns only on failure: CTL_FAILED after a
 * message, which where no such program exists ends with `help`. */
int ctl_become(const char *who, const char *const *places, size_t n_places, char **words,
               const char *help);

enum {
    CTL_DAEMON_WORDS = 12
};

/* Becomes voxeld, which lies beside voxelctl, with these words and, for globals->json, --json.
 * Returns as ctl_become. */
int ctl_become_daemon(const struct ctl_globals *globals, const char *who,
                      const char *const *words, size_t n_words);

#endif
