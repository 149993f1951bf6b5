// SPDX-License-Identifier: Apache-2.0
/* Decodes big bytes fields without protobuf-c, which copies every bytes field: they
 * are cut out of the message before it is unpacked, and in the result they point into
 * the input.
 *
 *   1  A walk over the wire records the cuts, each with its path (field, and which of its
 *      occurrences) and the lengths that shrink by it. It goes into messages that are
 *      themselves big enough to hold a big field, in a loop with its own stack.
 *   2  The rest, mostly a few hundred bytes, is put together in the arena and unpacked.
 *   3  The fields at the paths get their pointers.
 *
 * All is copied where the paths would not suffice: for a singular field given twice
 * (protobuf merges those), and for whatever the walk does not understand (protobuf-c
 * then decides about it). */
#include <string.h>

#include "proto/wire/decode.h"
#include "proto/wire/fields.h"
#include "proto/wire/wire_format.h"

enum {
    MAX_DEPTH = 12 /* of the schema, which a test checks */
};

/* LEFT_ALONE: the message is unusual, so protobuf-c gets all of it. */
enum outcome {
    WALKED,
    LEFT_ALONE,
    NO_MEMORY
};

struct step {
    const ProtobufCFieldDescriptor *field;
    uint32_t occurrence; /* of a repeated field */
};

/* One bytes field, in the order of the wire. */
struct cut {
    struct cut *next;
    const uint8_t *begin; /* of the field with its tag */
    const uint8_t *end;
    const uint8_t *data; /* of its content, which ends there too */
    size_t n_steps;
    struct step path[];
};

/* The length field of a message that lost some bytes. */
struct patch {
    struct patch *next;
    size_t at; /* in what is left */
    size_t n_width;
    size_t n_bytes;
};

/* A message that the walk is inside of. */
struct frame {
    const ProtobufCMessageDescriptor *descriptor;
    const uint8_t *end;
    const uint8_t *begin;
    size_t length_at; /* in what is left */
    size_t n_width;
    size_t cut_before; /* bytes cut out when it began */
    struct step step;  /* how its parent holds it */
    uint32_t n_seen[VXD_BORROW_FIELDS];
};

struct walk {
    struct vxd_decoder *decoder;
    const struct vxd_borrow *borrow;
    const uint8_t *begin;
    struct vxd_wire_reader reader;
    struct cut *cuts;
    struct cut **cuts_end;
    struct patch *patches;
    size_t cut_bytes;
    struct vxd_err *err;
    size_t depth; /* frames in use, the message itself included */
    struct frame frames[MAX_DEPTH];
};

static enum outcome note_cut(struct walk *w, const ProtobufCFieldDescriptor *field,
                             const uint8_t *begin, const uint8_t *data)
{
    size_t n_steps = w->depth; /* a step into each frame but the first, and the field */
    struct cut *cut = vxd_decoder_alloc(
        w->decoder, sizeof *cut + n_steps * sizeof cut->path[0], w->err);

    if (cut == NULL) {
        return NO_MEMORY;
    }
    cut->next = NULL;
    cut->begin = begin;
    cut->end = w->reader.at;
    cut->data = data;
    cut->n_steps = n_steps;
    for (size_t i = 0; i + 1 < n_steps; i++) {
        cut->path[i] = w->frames[i + 1].step;
    }
    cut->path[n_steps - 1] = (struct step){field, 0};
    *w->cuts_end = cut;
    w->cuts_end = &cut->next;
    w->cut_bytes += (size_t)(cut->end - begin);
    return WALKED;
}

/* n_field: the content's bytes, which begin at the reader's position. */
static void enter(struct walk *w, const ProtobufCFieldDescriptor *field,
                  uint32_t occurrence, const uint8_t *length, size_t n_field)
{
    struct frame *frame = &w->frames[w->depth++];

    memset(frame, 0, sizeof *frame);
    frame->descriptor = field->descriptor;
    frame->begin = w->reader.at;
    frame->end = frame->begin + n_field;
    frame->length_at = (size_t)(length - w->begin) - w->cut_bytes;
    frame->n_width = (size_t)(frame->begin - length);
    frame->cut_before = w->cut_bytes;
    frame->step = (struct step){field, occurrence};
}

static enum outcome leave(struct walk *w)
{
    struct frame *frame = &w->frames[--w->depth];
    size_t n_cut = w->cut_bytes - frame->cut_before;
    struct patch *patch;

    if (n_cut == 0 || w->depth == 0) {
        return WALKED;
    }
    patch = vxd_decoder_alloc(w->decoder, sizeof *patch, w->err);
    if (patch == NULL) {
        return NO_MEMORY;
    }
    patch->at = frame->length_at;
    patch->n_width = frame->n_width;
    patch->n_bytes = (size_t)(frame->end - frame->begin) - n_cut;
    patch->next = w->patches;
    w->patches = patch;
    return WALKED;
}

static bool is_borrowable(const struct walk *w, const ProtobufCFieldDescriptor *field,
                          const uint8_t *data, size_t n_bytes)
{
    /* A oneof needs its field on the wire to know that the field is set. */
    return field->type == PROTOBUF_C_TYPE_BYTES &&
           field->label != PROTOBUF_C_LABEL_REPEATED &&
           (field->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) == 0 &&
           n_bytes >= w->borrow->least_bytes && (uintptr_t)data % w->borrow->align == 0;
}

static bool is_enterable(const struct walk *w, const ProtobufCFieldDescriptor *field,
                         size_t n_bytes)
{
    const ProtobufCMessageDescriptor *descriptor = field->descriptor;

    return field->type == PROTOBUF_C_TYPE_MESSAGE && n_bytes > w->borrow->least_bytes &&
           w->depth < MAX_DEPTH && descriptor->n_fields <= VXD_BORROW_FIELDS;
}

/* Handles a length-delimited field, whose tag begins at `begin`. */
static enum outcome walk_delimited(struct walk *w, uint32_t number, const uint8_t *begin)
{
    struct frame *frame = &w->frames[w->depth - 1];
    const ProtobufCFieldDescriptor *field =
        protobuf_c_message_descriptor_get_field(frame->descriptor, number);
    const uint8_t *length = w->reader.at;
    const uint8_t *data;
    uint64_t n_bytes;
    uint32_t n_seen = 0;

    if (!vxd_wire_read_varint(&w->reader, VXD_WIRE_LENGTH_BYTES, &n_bytes)) {
        return LEFT_ALONE;
    }
    data = w->reader.at;
    if (n_bytes > (uint64_t)(frame->end - data)) {
        return LEFT_ALONE;
    }
    if (field != NULL) {
        n_seen = frame->n_seen[field - frame->descriptor->fields]++;
        if (n_seen > 0 && field->label != PROTOBUF_C_LABEL_REPEATED &&
            (field->type == PROTOBUF_C_TYPE_MESSAGE ||
             field->type == PROTOBUF_C_TYPE_BYTES)) {
            return LEFT_ALONE;
        }
        if (is_enterable(w, field, (size_t)n_bytes)) {
            enter(w, field, n_seen, length, (size_t)n_bytes);
            return WALKED;
        }
    }
    w->reader.at += n_bytes;
    if (field != NULL && is_borrowable(w, field, data, (size_t)n_bytes)) {
        return note_cut(w, field, begin, data);
    }
    return WALKED;
}

static enum outcome walk_field(struct walk *w)
{
    const uint8_t *begin = w->reader.at;
    uint32_t number;
    uint64_t value;
    unsigned wire_type;
    bool ok = false;

    /* No field reaches beyond its message. */
    w->reader.end = w->frames[w->depth - 1].end;
    if (!vxd_wire_read_tag(&w->reader, &number, &wire_type)) {
        return LEFT_ALONE;
    }
    switch (wire_type) {
    case PROTOBUF_C_WIRE_TYPE_VARINT:
        ok = vxd_wire_read_varint(&w->reader, VXD_WIRE_VARINT_BYTES, &value);
        break;
    case PROTOBUF_C_WIRE_TYPE_64BIT:
        ok = vxd_wire_skip(&w->reader, 8);
        break;
    case PROTOBUF_C_WIRE_TYPE_32BIT:
        ok = vxd_wire_skip(&w->reader, 4);
        break;
    case PROTOBUF_C_WIRE_TYPE_LENGTH_PREFIXED:
        return walk_delimited(w, number, begin);
    default:
        break;
    }
    return ok ? WALKED : LEFT_ALONE;
}

static enum outcome walk(struct walk *w)
{
    enum outcome outcome = WALKED;

    while (w->depth > 0 && outcome == WALKED) {
        outcome = w->reader.at == w->frames[w->depth - 1].end ? leave(w) : walk_field(w);
    }
    return outcome;
}

/* Assembles the message without the cuts. NULL: no memory. */
static uint8_t *put_together(const struct walk *w, size_t n_left, const uint8_t *end)
{
    uint8_t *left = vxd_decoder_alloc(w->decoder, n_left, w->err);
    const uint8_t *from = w->begin;
    uint8_t *to = left;

    if (left == NULL) {
        return NULL;
    }
    for (const struct cut *cut = w->cuts; cut != NULL; cut = cut->next) {
        size_t n = (size_t)(cut->begin - from);

        memcpy(to, from, n);
        to += n;
        from = cut->end;
    }
    memcpy(to, from, (size_t)(end - from));
    for (const struct patch *p = w->patches; p != NULL; p = p->next) {
        vxd_wire_write_varint(left + p->at, p->n_bytes, p->n_width);
    }
    return left;
}

/* Sets the field at the end of the path, unless a later member of a oneof on the path
 * replaced it. */
static void set_field(ProtobufCMessage *message, const struct cut *cut)
{
    const ProtobufCBinaryData data = {.len = (size_t)(cut->end - cut->data),
                                      .data = (uint8_t *)(uintptr_t)cut->data};
    size_t last = cut->n_steps - 1;

    for (size_t i = 0; i < last; i++) {
        const struct step *step = &cut->path[i];
        const uint8_t *values;
        bool is_repeated = step->field->label == PROTOBUF_C_LABEL_REPEATED;
        size_t at = is_repeated ? step->occurrence : 0;

        if (at >= vxd_field_values(message, step->field, &values)) {
            return;
        }
        message = vxd_field_pointer(values + at * sizeof(void *));
    }
    memcpy((uint8_t *)message + cut->path[last].field->offset, &data, sizeof data);
}

/* Decodes all by protobuf-c. */
static enum vxd_status decode_whole(struct vxd_decoder *decoder, bool is_live,
                                    const ProtobufCMessageDescriptor *descriptor,
                                    const uint8_t *bytes, size_t n_bytes,
                                    ProtobufCMessage **out, struct vxd_err *err)
{
    if (is_live && n_bytes > 0) {
        uint8_t *copy = vxd_decoder_alloc(decoder, n_bytes, err);

        if (copy == NULL) {
            return VXD_RESOURCE_EXHAUSTED;
        }
        memcpy(copy, bytes, n_bytes);
        bytes = copy;
    }
    return vxd_decode(decoder, descriptor, bytes, n_bytes, out, err);
}

enum vxd_status vxd_decode_borrowing(struct vxd_decoder *decoder,
                                     const struct vxd_borrow *borrow,
                                     const ProtobufCMessageDescriptor *descriptor,
                                     const uint8_t *bytes, size_t n_bytes,
                                     ProtobufCMessage **out, size_t *n_borrowed,
                                     struct vxd_err *err)
{
    struct walk w;
    const uint8_t *left;
    enum outcome outcome = LEFT_ALONE;
    enum vxd_status status;

    *n_borrowed = 0;
    if (n_bytes > borrow->least_bytes && descriptor->n_fields <= VXD_BORROW_FIELDS) {
        /* The frames are cleared as they are entered. */
        w.decoder = decoder;
        w.borrow = borrow;
        w.begin = bytes;
        w.reader = (struct vxd_wire_reader){.at = bytes, .end = bytes + n_bytes};
        w.cuts = NULL;
        w.cuts_end = &w.cuts;
        w.patches = NULL;
        w.cut_bytes = 0;
        w.err = err;
        w.depth = 1;
        w.frames[0] = (struct frame){
            .descriptor = descriptor, .begin = bytes, .end = bytes + n_bytes};
        outcome = walk(&w);
    }
    if (outcome == NO_MEMORY) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    if (outcome == LEFT_ALONE || w.cuts == NULL) {
        return decode_whole(decoder, borrow->is_live, descriptor, bytes, n_bytes, out,
                            err);
    }
    left = put_together(&w, n_bytes - w.cut_bytes, bytes + n_bytes);
    if (left == NULL) {
        return VXD_RESOURCE_EXHAUSTED;
    }
    VXD_TRY(vxd_decode(decoder, descriptor, left, n_bytes - w.cut_bytes, out, err));
    for (const struct cut *cut = w.cuts; cut != NULL; cut = cut->next) {
        set_field(*out, cut);
        *n_borrowed += (size_t)(cut->end - cut->data);
    }
out:
    return status;
}
