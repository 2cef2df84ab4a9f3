/* SPDX-License-Identifier: Apache-2.0 */
/* The depth of a serialized message. protobuf-c unpacks by recursion without a limit, so that a small file of nested
 * graphs would overflow the stack. */
#include "host_tensor.h"

enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

/* Reads a varint and advances; false at the end of the bytes. */
static bool read_varint(const uint8_t **at, const uint8_t *end, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && *at < end; shift += 7) {
        uint8_t byte = *(*at)++;
        *value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return true;
    }
    return false;
}

/* Skips or enters one field of a message. */
static bool field_nests(const ProtobufCMessageDescriptor *kind, const uint8_t **at, const uint8_t *end, int most)
{
    uint64_t tag, length;
    if (!read_varint(at, end, &tag))
        return false;
    switch (tag & 7) {
    case WIRE_VARINT:
        return read_varint(at, end, &length);
    case WIRE_64:
        length = 8;
        break;
    case WIRE_32:
        length = 4;
        break;
    case WIRE_BYTES:
        if (read_varint(at, end, &length))
            break;
        return false;
    default: /* groups, which protobuf-c refuses too */
        return false;
    }
    if (length > (uint64_t)(end - *at))
        return false;
    const ProtobufCFieldDescriptor *field =
        tag >> 3 <= INT32_MAX ? protobuf_c_message_descriptor_get_field(kind, (unsigned)(tag >> 3)) : NULL;
    bool message = field && field->type == PROTOBUF_C_TYPE_MESSAGE && (tag & 7) == WIRE_BYTES;
    const uint8_t *inside = *at;
    *at += length;
    return !message || (most > 0 && proto_nests(field->descriptor, inside, (size_t)length, most - 1));
}

bool proto_nests(const ProtobufCMessageDescriptor *kind, const uint8_t *at, size_t n, int most)
{
    const uint8_t *end = at + n;
    while (at < end)
        if (!field_nests(kind, &at, end, most))
            return false;
    return true;
}
