// SPDX-License-Identifier: Apache-2.0
/* A message is unpacked, its tree is listed, and some fields of random messages in it are
 * changed; then it is packed again. What has grown past the limit is thrown away and begun
 * anew. */
#include "tests/fuzz/server/mutate.h"

#include <stdlib.h>
#include <string.h>

#include "proto/wire/wire.h"
#include "tests/fuzz/server/mutate_value.h"

enum {
    MOST_CHANGES = 5, /* of one mutation */
    ATTEMPTS = 8,
    DONORS = 16, /* messages that are asked for a value to copy */
    MOST_COPIES = 1100,
    MOST_COPIED_BYTES = 1 << 18
};

static void *member_of(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    return (uint8_t *)message + field->offset;
}

static size_t count_of(const ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
    const uint8_t *values;

    return vxd_field_values(message, field, &values);
}

static bool is_in_oneof(const ProtobufCFieldDescriptor *field)
{
    return (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) != 0;
}

/* Deep as the schema is, whatever the input. */
void fuzz_collect(ProtobufCMessage *root, struct fuzz_nodes *out)
{
    if (out->n == FUZZ_MAX_NODES) {
        return;
    }
    out->items[out->n++] = root;
    for (unsigned i = 0; i < root->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &root->descriptor->fields[i];
        const uint8_t *values;
        size_t n;

        if (field->type != PROTOBUF_C_TYPE_MESSAGE) {
            continue;
        }
        n = vxd_field_values(root, field, &values);
        for (size_t k = 0; k < n; k++) {
            fuzz_collect(vxd_field_pointer(values + k * sizeof(void *)), out);
        }
    }
}

/* An empty message's fields, and those of its messages, get values. Deep as the schema. */
static void fill(struct fuzz_random *random, ProtobufCMessage *message);

/* Replaces a repeated field's array by one of n items, whose values the caller made. */
static void set_array(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                      uint8_t *take_items, size_t n)
{
    if (n == 0) {
        free(take_items);
        take_items = NULL;
    }
    memcpy(member_of(message, field), &take_items, sizeof take_items);
    memcpy((uint8_t *)message + field->quantifier_offset, &n, sizeof n);
}

/* Inserts `copies` values before item `at`: copies of *from, or new ones without. */
static void insert(struct fuzz_random *random, ProtobufCMessage *message,
                   const ProtobufCFieldDescriptor *field, size_t at, size_t copies,
                   const void *from)
{
    size_t item = vxd_field_value_bytes(field);
    size_t n = count_of(message, field);
    uint8_t *old = vxd_field_pointer(member_of(message, field));
    uint8_t *items = fuzz_alloc((n + copies) * item);

    if (n > 0) {
        memcpy(items, old, at * item);
        memcpy(items + (at + copies) * item, old + at * item, (n - at) * item);
    }
    for (size_t i = 0; i < copies; i++) {
        uint8_t *value = items + (at + i) * item;

        if (from != NULL) {
            fuzz_value_copy(field, value, from);
            continue;
        }
        fuzz_value_make(random, field, value);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            fill(random, vxd_field_pointer(value));
        }
    }
    free(old);
    set_array(message, field, items, n + copies);
}

static void erase(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field,
                  size_t at)
{
    size_t item = vxd_field_value_bytes(field);
    size_t n = count_of(message, field);
    uint8_t *items = vxd_field_pointer(member_of(message, field));

    fuzz_value_clear(field, items + at * item);
    memmove(items + at * item, items + (at + 1) * item, (n - at - 1) * item);
    set_array(message, field, items, n - 1);
}

static void swap_items(struct fuzz_random *random, ProtobufCMessage *message,
                       const ProtobufCFieldDescriptor *field)
{
    size_t item = vxd_field_value_bytes(field);
    size_t n = count_of(message, field);
    uint8_t *items = vxd_field_pointer(member_of(message, field));
    uint8_t *a = items + fuzz_random_below(random, n) * item;
    uint8_t *b = items + fuzz_random_below(random, n) * item;
    uint8_t kept[sizeof(ProtobufCBinaryData)];

    memcpy(kept, a, item);
    memmove(a, b, item);
    memcpy(b, kept, item);
}

/* A value of a field of the same kind somewhere in the tree, NULL where none was met. */
static const void *find_donor(struct fuzz_random *random, const struct fuzz_nodes *nodes,
                              const ProtobufCFieldDescriptor *field)
{
    for (int i = 0; i < DONORS; i++) {
        ProtobufCMessage *node = nodes->items[fuzz_random_below(random, nodes->n)];
        const ProtobufCMessageDescriptor *descriptor = node->descriptor;
        const ProtobufCFieldDescriptor *other;
        const uint8_t *values;
        size_t n;

        if (descriptor->n_fields == 0) {
            continue;
        }
        other = &descriptor->fields[fuzz_random_below(random, descriptor->n_fields)];
        n = vxd_field_values(node, other, &values);
        if (other->type == field->type && other->descriptor == field->descriptor &&
            n > 0) {
            return values + fuzz_random_below(random, n) * vxd_field_value_bytes(other);
        }
    }
    return NULL;
}

/* How often an item is repeated: past limits on how many there may be, where it is small. */
static size_t choose_copies(struct fuzz_random *random,
                            const ProtobufCFieldDescriptor *field, const void *value)
{
    static const size_t many[] = {2, 4, 8, 32, 64, 256, MOST_COPIES};
    size_t copies = many[fuzz_random_below(random, sizeof many / sizeof many[0])];
    size_t n_bytes = field->type == PROTOBUF_C_TYPE_MESSAGE
                         ? protobuf_c_message_get_packed_size(vxd_field_pointer(value))
                         : vxd_field_value_bytes(field);

    return n_bytes * copies <= MOST_COPIED_BYTES ? copies : 2;
}

static void change_repeated(struct fuzz_random *random, const struct fuzz_nodes *nodes,
                            ProtobufCMessage *message,
                            const ProtobufCFieldDescriptor *field)
{
    size_t n = count_of(message, field);
    uint8_t *items = vxd_field_pointer(member_of(message, field));
    size_t item = vxd_field_value_bytes(field);
    size_t at = n > 0 ? fuzz_random_below(random, n) : 0;
    uint8_t *value = n > 0 ? items + at * item : NULL;

    switch (n > 0 ? fuzz_random_below(random, 10) : 0) {
    case 0:
        insert(random, message, field, at, 1, NULL);
        break;
    case 1:
        insert(random, message, field, at, 1, find_donor(random, nodes, field));
        break;
    case 2:
        insert(random, message, field, at, 1, value);
        break;
    case 3:
        insert(random, message, field, at, choose_copies(random, field, value), value);
        break;
    case 4:
        for (size_t i = 0; i < n; i++) {
            fuzz_value_clear(field, items + i * item);
        }
        set_array(message, field, items, 0);
        break;
    case 5:
    case 6:
        erase(message, field, at);
        break;
    case 7:
        swap_items(random, message, field);
        break;
    default:
        fuzz_value_change(random, field, value);
        break;
    }
}

/* Sets a singular field to a new or copied value; a member of a oneof becomes the one that
 * is set. */
static void assign(struct fuzz_random *random, ProtobufCMessage *message,
                   const ProtobufCFieldDescriptor *field, const void *from)
{
    void *value = member_of(message, field);
    uint8_t fresh[sizeof(ProtobufCBinaryData)];
    size_t n_bytes = vxd_field_value_bytes(field);

    if (from != NULL) {
        fuzz_value_copy(field, fresh, from);
    } else {
        fuzz_value_make(random, field, fresh);
    }
    if (is_in_oneof(field)) {
        const ProtobufCFieldDescriptor *set = protobuf_c_message_descriptor_get_field(
            message->descriptor, vxd_field_oneof_case(message, field));

        if (set != NULL) {
            fuzz_value_clear(set, member_of(message, set));
        }
        memcpy((uint8_t *)message + field->quantifier_offset, &field->id,
               sizeof field->id);
    } else if (count_of(message, field) > 0) {
        fuzz_value_clear(field, value);
    }
    memcpy(value, fresh, n_bytes);
}

/* Takes a message away, or a oneof's member. */
static void unset(ProtobufCMessage *message, const ProtobufCFieldDescriptor *field)
{
    void *value = member_of(message, field);

    fuzz_value_clear(field, value);
    memset(value, 0, vxd_field_value_bytes(field));
    if (is_in_oneof(field)) {
        memset((uint8_t *)message + field->quantifier_offset, 0, sizeof(uint32_t));
    }
}

static void change_singular(struct fuzz_random *random, const struct fuzz_nodes *nodes,
                            ProtobufCMessage *message,
                            const ProtobufCFieldDescriptor *field)
{
    bool is_message = field->type == PROTOBUF_C_TYPE_MESSAGE;
    bool is_set = count_of(message, field) > 0;

    switch (fuzz_random_below(random, 6)) {
    case 0:
        assign(random, message, field, find_donor(random, nodes, field));
        break;
    case 1:
        if (is_set && (is_message || is_in_oneof(field))) {
            unset(message, field);
            break;
        }
        /* fall through */
    default:
        if (!is_set || is_message) {
            assign(random, message, field, NULL);
            if (is_message) {
                fill(random, vxd_field_pointer(member_of(message, field)));
            }
        } else {
            fuzz_value_change(random, field, member_of(message, field));
        }
        break;
    }
}

static void fill(struct fuzz_random *random, ProtobufCMessage *message)
{
    for (unsigned i = 0; i < message->descriptor->n_fields; i++) {
        const ProtobufCFieldDescriptor *field = &message->descriptor->fields[i];

        /* Members of a oneof take each other's place. */
        if (fuzz_random_below(random, 2) == 0) {
            continue;
        }
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            insert(random, message, field, 0, 1 + fuzz_random_below(random, 2), NULL);
            continue;
        }
        assign(random, message, field, NULL);
        if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
            fill(random, vxd_field_pointer(member_of(message, field)));
        }
    }
}

/* Lists what is below a message that is no field's. */
static struct fuzz_nodes *list(ProtobufCMessage *root)
{
    struct fuzz_nodes *nodes = fuzz_alloc(sizeof *nodes);

    nodes->n = 0;
    fuzz_collect(root, nodes);
    return nodes;
}

static void change_one(struct fuzz_random *random, ProtobufCMessage *root)
{
    struct fuzz_nodes *nodes = list(root);
    ProtobufCMessage *node = nodes->items[fuzz_random_below(random, nodes->n)];
    const ProtobufCMessageDescriptor *descriptor = node->descriptor;
    const ProtobufCFieldDescriptor *field;

    if (descriptor->n_fields == 0) {
        node = root;
        descriptor = root->descriptor;
    }
    field = &descriptor->fields[fuzz_random_below(random, descriptor->n_fields)];
    if (field->label == PROTOBUF_C_LABEL_REPEATED) {
        change_repeated(random, nodes, node, field);
    } else {
        change_singular(random, nodes, node, field);
    }
    free(nodes);
}

static ProtobufCMessage *unpack(const ProtobufCMessageDescriptor *descriptor,
                                const uint8_t *bytes, size_t n_bytes)
{
    ProtobufCMessage *message =
        protobuf_c_message_unpack(descriptor, NULL, n_bytes, bytes);

    if (message == NULL) {
        message = fuzz_alloc(descriptor->sizeof_message);
        protobuf_c_message_init(descriptor, message);
    }
    return message;
}

/* Packs where there is room and frees; false where there is none. */
static bool pack(ProtobufCMessage *take_message, uint8_t *out, size_t max_size, size_t *n)
{
    size_t n_bytes = protobuf_c_message_get_packed_size(take_message);
    bool fits = n_bytes <= max_size;

    if (fits) {
        *n = protobuf_c_message_pack(take_message, out);
    }
    protobuf_c_message_free_unpacked(take_message, NULL);
    return fits;
}

size_t fuzz_mutate(const ProtobufCMessageDescriptor *descriptor, uint8_t *data,
                   size_t size, size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};

    for (int i = 0; i < ATTEMPTS; i++) {
        ProtobufCMessage *message = unpack(descriptor, data, size);
        size_t n_changes = 1 + fuzz_random_below(&random, MOST_CHANGES);

        for (size_t k = 0; k < n_changes; k++) {
            change_one(&random, message);
        }
        if (pack(message, data, max_size, &size)) {
            break;
        }
    }
    return size;
}

/* A field of a random message of a gets the value of the like message's of b. */
static void graft(struct fuzz_random *random, ProtobufCMessage *a,
                  const struct fuzz_nodes *donors)
{
    struct fuzz_nodes *nodes = list(a);
    ProtobufCMessage *node = nodes->items[fuzz_random_below(random, nodes->n)];
    const ProtobufCMessageDescriptor *descriptor = node->descriptor;
    size_t at = fuzz_random_below(random, donors->n);
    const ProtobufCFieldDescriptor *field;
    const uint8_t *values;
    size_t n;

    free(nodes);
    for (size_t i = 0; i < donors->n; i++) {
        const ProtobufCMessage *donor = donors->items[(at + i) % donors->n];

        if (donor->descriptor != descriptor || descriptor->n_fields == 0) {
            continue;
        }
        field = &descriptor->fields[fuzz_random_below(random, descriptor->n_fields)];
        n = vxd_field_values(donor, field, &values);
        if (n == 0) {
            continue;
        }
        values += fuzz_random_below(random, n) * vxd_field_value_bytes(field);
        if (field->label == PROTOBUF_C_LABEL_REPEATED) {
            insert(random, node, field,
                   fuzz_random_below(random, count_of(node, field) + 1), 1, values);
        } else {
            assign(random, node, field, values);
        }
        return;
    }
}

size_t fuzz_cross(const ProtobufCMessageDescriptor *descriptor, const uint8_t *a,
                  size_t a_bytes, const uint8_t *b, size_t b_bytes, uint8_t *out,
                  size_t max_size, unsigned seed)
{
    struct fuzz_random random = {seed};
    ProtobufCMessage *from = unpack(descriptor, b, b_bytes);
    struct fuzz_nodes *donors = list(from);
    size_t n = 0;

    for (int i = 0; i < ATTEMPTS; i++) {
        ProtobufCMessage *message = unpack(descriptor, a, a_bytes);
        size_t n_grafts = 1 + fuzz_random_below(&random, 3);

        for (size_t k = 0; k < n_grafts; k++) {
            graft(&random, message, donors);
        }
        if (pack(message, out, max_size, &n)) {
            break;
        }
    }
    free(donors);
    protobuf_c_message_free_unpacked(from, NULL);
    return n;
}
