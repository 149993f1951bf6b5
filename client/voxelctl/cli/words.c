// SPDX-License-Identifier: Apache-2.0
/* Options of the command line, by getopt_long, with what it lacks: words that are negative numbers,
 * and which option a misspelt one may have meant. */
#include <string.h>

#include "client/voxelctl/cli/cli.h"
#include "proto/base/closest.h"

/* "-1", "-.5,2": a coordinate, not an option. */
static bool is_negative(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && strchr("0123456789.", word[1]) != NULL;
}

static bool is_word(const char *word)
{
    return word[0] != '-' || word[1] == '\0' || is_negative(word);
}

/* Whether "--name", which may be shortened, takes the next word as its value. */
static bool takes_value(const struct option *options, const char *word)
{
    size_t n = strlen(word + 2);
    const struct option *found = NULL;

    if (word[1] != '-' || strchr(word, '=') != NULL) {
        return false;
    }
    for (const struct option *option = options; option->name != NULL; option++) {
        if (strlen(option->name) < n || memcmp(option->name, word + 2, n) != 0) {
            continue;
        }
        if (option->name[n] == '\0') {
            return option->has_arg == required_argument;
        }
        if (found != NULL && found->val != option->val) {
            return false; /* getopt_long refuses it */
        }
        found = option;
    }
    return found != NULL && found->has_arg == required_argument;
}

/* Moves the word at `from` to `to`, before those in between. */
static void move_forward(char **argv, int from, int to)
{
    char *word = argv[from];

    memmove(&argv[to + 1], &argv[to], sizeof *argv * (size_t)(from - to));
    argv[to] = word;
}

const char *ctl_words_last(int argc, char **argv, const struct option *options)
{
    int n_options = 1; /* options and their values so far, behind the command's name */
    int at = 1;

    while (at < argc && strcmp(argv[at], "--") != 0) {
        bool has_value;

        if (is_word(argv[at])) {
            at++;
            continue;
        }
        has_value = takes_value(options, argv[at]);
        if (has_value && at + 1 == argc) {
            return argv[at];
        }
        move_forward(argv, at++, n_options++);
        if (has_value) {
            move_forward(argv, at++, n_options++);
        }
    }
    if (at < argc) { /* all after it are words */
        move_forward(argv, at, n_options);
    }
    return NULL;
}

/* Writes the options that `name` may mean as "--a, --b", and returns how many. */
static int list_options(const struct option *options, const char *name, char *list,
                        size_t n_bytes)
{
    size_t n_written = 0;
    int n_found = 0;

    list[0] = '\0';
    for (const struct option *option = options; option->name != NULL; option++) {
        if (strcmp(option->name, name) == 0) {
            (void)snprintf(list, n_bytes, "--%s", name);
            return 1;
        }
        if (strncmp(option->name, name, strlen(name)) == 0) {
            n_found++;
            n_written += (size_t)snprintf(list + n_written, n_bytes - n_written, "%s--%s",
                                          n_written > 0 ? ", " : "", option->name);
            n_written = n_written < n_bytes ? n_written : n_bytes - 1;
        }
    }
    return n_found;
}

/* Reports what getopt_long did not take. */
static void report(const char *command, int id, char **argv, int at,
                   const struct option *options)
{
    const char *word = argv[at];
    const char *typed = word + strspn(word, "-");
    struct vxd_closest closest = {0};
    char name[VXD_CLOSEST_BYTES];
    char list[2048];
    char meant[VXD_CLOSEST_BYTES + 24] = "";
    int n_found;

    if (id == ':') {
        (void)ctl_usage(command, "%s needs a value", word);
        return;
    }
    (void)snprintf(name, sizeof name, "%.*s", (int)strcspn(typed, "="), typed);
    n_found = list_options(options, name, list, sizeof list);
    if (n_found == 1) {
        (void)ctl_usage(command, "%s takes no value", list);
        return;
    }
    if (n_found > 1) {
        (void)ctl_usage(command, "%s may be %s", word, list);
        return;
    }
    closest.word = name;
    for (const struct option *option = options; option->name != NULL; option++) {
        vxd_closest_offer(&closest, option->name);
    }
    if (closest.found[0] != '\0') {
        (void)snprintf(meant, sizeof meant, ". Did you mean --%s?", closest.found);
    }
    (void)ctl_usage(command, "there is no option %s%s", word, meant);
}

int ctl_next_option(const char *command, int argc, char **argv,
                    const struct option *options)
{
    int at;
    int id;

    if (optind == 0) { /* getopt_long begins anew */
        const char *lacking = ctl_words_last(argc, argv, options);

        if (lacking != NULL) {
            (void)ctl_usage(command, "%s needs a value", lacking);
            return '?';
        }
    }
    at = optind > 0 ? optind : 1;
    if (at >= argc || is_word(argv[at])) {
        optind = at;
        return -1;
    }
    opterr = 0;
    id = getopt_long(argc, argv, "+:h", options, NULL);
    if (id == '?' || id == ':') {
        report(command, id, argv, at, options);
        return '?';
    }
    return id;
}
