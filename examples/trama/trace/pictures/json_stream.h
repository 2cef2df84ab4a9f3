/* SPDX-License-Identifier: Apache-2.0 */
/* Writes JSON piece by piece, so that a trace of any length needs no memory. It knows no trace. */
#ifndef JSON_STREAM_H
#define JSON_STREAM_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct json_stream {
    FILE *out;
    bool more; /* a part of the same object or list stands before, so that a comma follows */
} json_stream;

/* A field of an object. Of text, characters that are no UTF-8 become "?", line ends and tabs blanks. A number that is
 * not finite leaves its field out, since JSON has none. */
void json_text(json_stream *j, const char *key, const char *text);
void json_integer(json_stream *j, const char *key, int64_t value);
void json_number(json_stream *j, const char *key, double value);
void json_us(json_stream *j, const char *key, int64_t ns); /* in us, all digits */

/* A text in a list. */
void json_item(json_stream *j, const char *text);

/* Opens an object or a list by its bracket: a field, or with key NULL a part of a list; or an object on a line of its
 * own; and closes it. */
void json_open(json_stream *j, const char *key, char bracket);
void json_open_line(json_stream *j);
void json_close(json_stream *j, char bracket);

#endif
