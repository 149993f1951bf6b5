// SPDX-License-Identifier: Apache-2.0
/* Parses in one pass, without recursion: the open brackets lie on a stack. Strings are
 * unescaped in place, because they only get shorter. */
#include "proto/base/json_file.h"

#include <stdlib.h>
#include <string.h>

#include "proto/base/number.h"

enum {
    MAX_DEPTH = 32,
    FIRST_NODES = 256
};

struct parser {
    struct vxd_json_file *json;
    char *at; /* the bytes end with a zero */
    size_t open[MAX_DEPTH];
    size_t last[MAX_DEPTH]; /* the newest child of each; 0 = none */
    size_t depth;
    const char *wrong; /* the first error; NULL: none */
    bool without_memory;
};

static bool fail(struct parser *p, const char *what)
{
    p->wrong = what;
    return false;
}

static void skip_blanks(struct parser *p)
{
    p->at += strspn(p->at, " \t\r\n");
}

/* Parses four hexadecimal digits. */
static bool read_hex(const char *at, uint32_t *out)
{
    static const char digits[] = "0123456789abcdef0123456789ABCDEF";

    *out = 0;
    for (size_t i = 0; i < 4; i++) {
        const char *digit = at[i] != '\0' ? strchr(digits, at[i]) : NULL;

        if (digit == NULL) {
            return false;
        }
        *out = *out * 16 + (uint32_t)(digit - digits) % 16;
    }
    return true;
}

static char *put_utf8(char *to, uint32_t c)
{
    if (c < 0x80) {
        *to++ = (char)c;
    } else if (c < 0x800) {
        *to++ = (char)(0xc0 | c >> 6);
        *to++ = (char)(0x80 | (c & 0x3f));
    } else if (c < 0x10000) {
        *to++ = (char)(0xe0 | c >> 12);
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    } else {
        *to++ = (char)(0xf0 | c >> 18);
        *to++ = (char)(0x80 | (c >> 12 & 0x3f));
        *to++ = (char)(0x80 | (c >> 6 & 0x3f));
        *to++ = (char)(0x80 | (c & 0x3f));
    }
    return to;
}

/* Parses what follows a backslash. */
static bool read_escape(struct parser *p, char **to)
{
    static const char names[] = "\"\\/bfnrt";
    static const char meant[] = "\"\\/\b\f\n\r\t";
    const char *name = *p->at != '\0' ? strchr(names, *p->at) : NULL;
    uint32_t c;
    uint32_t low;

    if (name != NULL) {
        *(*to)++ = meant[name - names];
        p->at++;
        return true;
    }
    if (*p->at != 'u' || !read_hex(p->at + 1, &c) || c == 0) {
        return fail(p, "no such escape in a string");
    }
    p->at += 5;
    if (c >= 0xd800 && c < 0xe000) {
        if (c >= 0xdc00 || p->at[0] != '\\' || p->at[1] != 'u' ||
            !read_hex(p->at + 2, &low) || low < 0xdc00 || low >= 0xe000) {
            return fail(p, "half a surrogate pair in a string");
        }
        c = 0x10000 + ((c - 0xd800) << 10) + (low - 0xdc00);
        p->at += 6;
    }
    *to = put_utf8(*to, c);
    return true;
}

static bool read_string(struct parser *p, const char **text, size_t *n_text)
{
    char *to = ++p->at;

    *text = to;
    while (*p->at != '"') {
        if ((unsigned char)*p->at < 0x20) {
            return fail(p, "a string without an end");
        }
        if (*p->at == '\\') {
            p->at++;
            if (!read_escape(p, &to)) {
                return false;
            }
        } else {
            *to++ = *p->at++;
        }
    }
    *n_text = (size_t)(to - *text);
    *to = '\0'; /* ends at the closing quote at the latest */
    p->at++;
    return true;
}

static bool read_number(struct parser *p, struct vxd_json_node *node)
{
    double value;

    node->kind = VXD_JSON_NUMBER;
    node->text = p->at;
    node->n_text = strspn(p->at, "+-.0123456789eE");
    p->at += node->n_text;
    return vxd_number_double(node->text, node->n_text, &value) ||
           fail(p, "a malformed number");
}

static bool read_word(struct parser *p, struct vxd_json_node *node)
{
    static const char *const words[] = {"null", "false", "true"};

    for (size_t i = 0; i < 3; i++) {
        if (strncmp(p->at, words[i], strlen(words[i])) == 0) {
            node->kind = (enum vxd_json_kind)i;
            p->at += strlen(words[i]);
            return true;
        }
    }
    return fail(p, "a value is missing");
}

/* Appends a zeroed node, linked to its parent; NULL where there is no memory. */
static struct vxd_json_node *add_node(struct parser *p)
{
    struct vxd_json_file *json = p->json;
    size_t i = json->n_nodes;
    size_t n_bytes;

    if (i == json->capacity) {
        size_t capacity = i > 0 ? i : FIRST_NODES / 2;
        struct vxd_json_node *grown =
            vxd_size_mul(capacity, 2 * sizeof *json->nodes, &n_bytes)
                ? realloc(json->nodes, n_bytes)
                : NULL;

        if (grown == NULL) {
            p->without_memory = true;
            return NULL;
        }
        json->nodes = grown;
        json->capacity = 2 * capacity;
    }
    memset(&json->nodes[i], 0, sizeof json->nodes[i]);
    if (p->depth > 0) {
        struct vxd_json_node *parent = &json->nodes[p->open[p->depth - 1]];
        size_t *last = &p->last[p->depth - 1];

        parent->n_children++;
        *(*last > 0 ? &json->nodes[*last].next : &parent->first) = i;
        *last = i;
    }
    json->n_nodes++;
    return &json->nodes[i];
}

/* Parses one value, or the bracket that opens one. */
static bool read_value(struct parser *p)
{
    struct vxd_json_node *node;
    const char *key = NULL;
    size_t n_key;

    skip_blanks(p);
    if (p->depth > 0 && p->json->nodes[p->open[p->depth - 1]].kind == VXD_JSON_OBJECT) {
        if (*p->at != '"') {
            return fail(p, "the name of a member is missing");
        }
        if (!read_string(p, &key, &n_key)) {
            return false;
        }
        skip_blanks(p);
        if (*p->at++ != ':') {
            return fail(p, "a colon is missing");
        }
        skip_blanks(p);
    }
    node = add_node(p);
    if (node == NULL) {
        return false;
    }
    node->key = key;
    if (*p->at == '{' || *p->at == '[') {
        if (p->depth == MAX_DEPTH) {
            return fail(p, "too many brackets in one another");
        }
        node->kind = *p->at == '{' ? VXD_JSON_OBJECT : VXD_JSON_ARRAY;
        p->open[p->depth] = (size_t)(node - p->json->nodes);
        p->last[p->depth] = 0;
        p->depth++;
        p->at++;
        return true;
    }
    if (*p->at == '"') {
        node->kind = VXD_JSON_STRING;
        return read_string(p, &node->text, &node->n_text);
    }
    return *p->at == '-' || (*p->at >= '0' && *p->at <= '9') ? read_number(p, node)
                                                             : read_word(p, node);
}

/* Parses closing brackets, up to the comma before the next value. *more says whether
 * there is one. */
static bool close_values(struct parser *p, bool *more)
{
    *more = false;
    while (p->depth > 0) {
        const struct vxd_json_node *open = &p->json->nodes[p->open[p->depth - 1]];

        skip_blanks(p);
        if (*p->at == (open->kind == VXD_JSON_OBJECT ? '}' : ']')) {
            p->depth--;
            p->at++;
        } else if (open->n_children == 0) {
            *more = true; /* the first of them */
            return true;
        } else if (*p->at == ',') {
            p->at++;
            *more = true;
            return true;
        } else {
            return fail(p, "a comma or a closing bracket is missing");
        }
    }
    return true;
}

static bool parse(struct parser *p)
{
    bool more = true;

    while (more) {
        if (!read_value(p) || !close_values(p, &more)) {
            return false;
        }
    }
    skip_blanks(p);
    return *p->at == '\0' || fail(p, "something follows the end");
}

enum vxd_status vxd_json_file_parse(const uint8_t *bytes, size_t n_bytes,
                                    struct vxd_json_file *out, struct vxd_err *err)
{
    struct parser p = {.json = out};
    size_t line = 1;

    memset(out, 0, sizeof *out);
    out->bytes = n_bytes < SIZE_MAX ? malloc(n_bytes + 1) : NULL;
    if (out->bytes == NULL) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for %zu bytes",
                        n_bytes);
    }
    if (n_bytes > 0) {
        memcpy(out->bytes, bytes, n_bytes);
    }
    out->bytes[n_bytes] = '\0';
    p.at = out->bytes;
    if (parse(&p) && p.at == out->bytes + n_bytes) {
        return VXD_OK;
    }
    for (size_t i = 0; i < n_bytes && out->bytes + i < p.at; i++) {
        line += bytes[i] == '\n';
    }
    vxd_json_file_clear(out);
    if (p.without_memory) {
        return vxd_fail(err, VXD_RESOURCE_EXHAUSTED, NULL, "no memory for what is in it");
    }
    return vxd_fail(err, VXD_INVALID_ARGUMENT, NULL, "line %zu: %s", line,
                    p.wrong != NULL ? p.wrong : "a zero byte");
}

void vxd_json_file_clear(struct vxd_json_file *file)
{
    free(file->bytes);
    free(file->nodes);
    memset(file, 0, sizeof *file);
}
