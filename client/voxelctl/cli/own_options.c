// SPDX-License-Identifier: Apache-2.0
/* Parses options of subcommands that take some of a list beside the shared ones, and
 * values that several of them have. */
#include <string.h>

#include "proto/base/number.h"
#include "client/voxelctl/cli/cli.h"

enum {
    MAX_SHARED = 16
};

static void fill_options(const struct ctl_own_options *own, struct option *options)
{
    static const struct option shared[] = {CTL_GLOBAL_OPTIONS};
    size_t n = sizeof shared / sizeof shared[0];

    _Static_assert(sizeof shared / sizeof shared[0] + 1 < MAX_SHARED, "and the end");
    memcpy(options, shared, sizeof shared);
    if (own->takes_request) {
        options[n++] =
            (struct option){"request", required_argument, NULL, CTL_OPT_REQUEST};
    }
    for (size_t i = 0; i < own->n_known; i++) {
        if ((own->taken >> i & 1) != 0) {
            options[n++] =
                (struct option){own->known[i].name,
                                own->known[i].is_flag ? no_argument : required_argument,
                                NULL, (int)(CTL_OPT_FIRST_OWN + i)};
        }
    }
    options[n] = (struct option){NULL, 0, NULL, 0};
}

static const struct ctl_own_option *option_of(const struct ctl_own_options *own,
                                              ctl_bits bit)
{
    size_t i = 0;

    while (i + 1 < own->n_known && (bit >> i & 1) == 0) {
        i++;
    }
    return &own->known[i];
}

static const char *name_of(const struct ctl_own_options *own, ctl_bits bit)
{
    return option_of(own, bit)->name;
}

/* Checks that the options that were given go with each other; *result after a message. */
static bool go_together(const struct ctl_command *command,
                        const struct ctl_own_options *own, ctl_bits given, int *result)
{
    ctl_bits missing = own->required & ~given;

    if (missing != 0) {
        const struct ctl_own_option *option = option_of(own, missing);

        *result = ctl_usage(command->name, "no --%s: %s", option->name, option->right);
        return false;
    }
    for (size_t i = 0; i < own->n_relations; i++) {
        const struct ctl_relation *r = &own->relations[i];
        bool lacks = r->needs != 0 && (given & r->needs) == 0;

        if ((given & r->option) != 0 && (lacks || (given & r->excludes) != 0)) {
            *result = ctl_usage(command->name, "--%s %s --%s", name_of(own, r->option),
                                lacks ? "goes with" : "excludes",
                                name_of(own, lacks ? r->needs : r->excludes));
            return false;
        }
    }
    return true;
}

/* Checks that --request stands alone, as it is all of the request; *result after a message. */
static bool is_whole_request(const struct ctl_command *command,
                             const struct ctl_own_options *own, ctl_bits given,
                             size_t n_words, int *result)
{
    if (given != 0) {
        *result =
            ctl_usage(command->name, "--request excludes --%s", name_of(own, given));
    } else if (n_words > 0) {
        *result = ctl_usage(command->name, "--request takes the place of all words");
    }
    return given == 0 && n_words == 0;
}

bool ctl_take_own_options(struct ctl_globals *globals, const struct ctl_command *command,
                          const struct ctl_own_options *own, int argc, char **argv,
                          int *result)
{
    struct option options[MAX_SHARED + CTL_MAX_OWN];
    ctl_bits given = 0;
    size_t n_words;
    int id;

    fill_options(own, options);
    while ((id = ctl_next_option(command->name, argc, argv, options)) != -1) {
        if (id >= CTL_OPT_FIRST_OWN) {
            const struct ctl_own_option *option = &own->known[id - CTL_OPT_FIRST_OWN];

            given |= (ctl_bits)1 << (id - CTL_OPT_FIRST_OWN);
            if (!own->take(own->args, id, optarg)) {
                *result = ctl_usage(command->name, "--%s%s%s: %s", option->name,
                                    option->is_flag ? "" : " ",
                                    option->is_flag ? "" : optarg, option->right);
                return true;
            }
        } else if (id == CTL_OPT_REQUEST) {
            globals->request = optarg;
        } else if (ctl_common_option(globals, command, id, optarg, result)) {
            return true;
        }
    }
    n_words = (size_t)(argc - optind);
    if (globals->request != NULL) {
        return !is_whole_request(command, own, given, n_words, result);
    }
    if (n_words < own->n_min || n_words > own->n_max) {
        *result = ctl_wrong_words(command, n_words, own->n_min);
        return true;
    }
    return !go_together(command, own, given, result);
}

bool ctl_parse_u64(const char *text, uint64_t *out)
{
    return vxd_number_uint64(text, strlen(text), out);
}

bool ctl_parse_between(const char *text, double low, double high, double *out)
{
    return ctl_parse_doubles(text, out, 1) == 1 && *out >= low && *out <= high;
}

bool ctl_parse_size(const char *text, double size_m[3])
{
    size_t n = ctl_parse_doubles(text, size_m, 3);

    if (n == 1) {
        size_m[1] = size_m[0];
        size_m[2] = size_m[0];
    }
    return (n == 1 || n == 3) && size_m[0] > 0 && size_m[1] > 0 && size_m[2] > 0;
}

bool ctl_parse_box(const char *text, struct voxeld_scene_box *out)
{
    double numbers[6];

    if (ctl_parse_doubles(text, numbers, 6) != 6) {
        return false;
    }
    memcpy(out->low, numbers, sizeof out->low);
    memcpy(out->high, numbers + 3, sizeof out->high);
    return true;
}

bool ctl_parse_boxes(const char *text, struct ctl_boxes *out)
{
    double v[6 * CTL_MAX_BOXES];
    size_t n = ctl_parse_doubles(text, v, sizeof v / sizeof *v);

    if (n == 0 || n % 6 != 0) {
        return false;
    }
    out->n = n / 6;
    for (size_t i = 0; i < n; i++) {
        struct voxeld_body_box *box = &out->boxes[i / 6];

        if (i % 6 < 3) {
            box->low[i % 6] = v[i];
        } else {
            box->high[i % 6 - 3] = v[i];
        }
        if (i % 6 >= 3 && !(v[i - 3] < v[i])) {
            return false;
        }
    }
    return true;
}

int ctl_read_body(const char *command, const char *text, struct ctl_body *out)
{
    if (!ctl_parse_boxes(text, &out->boxes)) {
        return ctl_usage(
            command,
            "--body %s: X,Y,Z,X,Y,Z is right, the low and high corners of 1 to %d "
            "boxes",
            text, CTL_MAX_BOXES);
    }
    out->body = (struct voxeld_body){.boxes = out->boxes.boxes, .n_boxes = out->boxes.n};
    return CTL_OK;
}

bool ctl_parse_band(const char *text, double out[2])
{
    size_t n = ctl_parse_doubles(text, out, 2);

    out[1] = n == 1 ? out[0] : out[1];
    return n == 1 || n == 2;
}

bool ctl_parse_at(const char *text, struct voxeld_scene_at *out)
{
    *out = (struct voxeld_scene_at){0};
    if (text[strspn(text, "0123456789")] != '\0') {
        out->snapshot = text;
        return true;
    }
    return ctl_parse_u64(text, &out->version) && out->version > 0;
}

bool ctl_parse_corners(const char *text, double out[6])
{
    double v[6];
    size_t n = ctl_parse_doubles(text, v, 6);

    for (size_t i = 0; i < 3 && (n == 2 || n == 6); i++) {
        out[i] = v[n == 6 ? i : 0];
        out[3 + i] = v[n == 6 ? 3 + i : 1];
        if (!(out[i] < out[3 + i])) {
            return false;
        }
    }
    return n == 2 || n == 6;
}

bool ctl_parse_pixels(const char *text, uint32_t most, uint32_t out[2])
{
    char width[16];
    size_t n = strcspn(text, "x");

    if (n >= sizeof width || text[n] != 'x') {
        return false;
    }
    memcpy(width, text, n);
    width[n] = '\0';
    return ctl_parse_u32(width, 1, most, &out[0]) &&
           ctl_parse_u32(text + n + 1, 1, most, &out[1]);
}

bool ctl_parse_set(const char *text, const char *const *names, uint32_t *bits)
{
    struct ctl_names words;

    if (!ctl_parse_names(&words, text)) {
        return false;
    }
    for (size_t i = 0; i < words.n; i++) {
        int choice = ctl_parse_choice(words.names[i], names);

        if (choice < 0) {
            return false;
        }
        *bits |= UINT32_C(1) << choice;
    }
    return true;
}

int ctl_parse_choice(const char *text, const char *const *names)
{
    int i = 0;

    while (names[i] != NULL && strcmp(names[i], text) != 0) {
        i++;
    }
    return names[i] != NULL ? i : -1;
}

int ctl_parse_fsync(const char *text)
{
    static const char *const names[] = {"always", "everysec", "off", NULL};

    return ctl_parse_choice(text, names);
}
