/* SPDX-License-Identifier: Apache-2.0 */
#include "json_stream.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "picture_parts.h"

static void json_string(json_stream *j, const char *text)
{
    fputc('"', j->out);
    for (int length; text && (length = character_length(text)); text += abs(length))
        if (length < 0)
            fputc(*text == '\n' || *text == '\t' ? ' ' : '?', j->out);
        else
            fprintf(j->out, "%s%.*s", *text == '"' || *text == '\\' ? "\\" : "", length, text);
    fputc('"', j->out);
}

/* A comma stands before each part of an object or list but the first. */
static void json_comma(json_stream *j)
{
    fputs(j->more ? "," : "", j->out);
    j->more = true;
}

void json_item(json_stream *j, const char *text)
{
    json_comma(j);
    json_string(j, text);
}

static void json_key(json_stream *j, const char *key)
{
    json_comma(j);
    fprintf(j->out, "\"%s\":", key);
}

void json_text(json_stream *j, const char *key, const char *text)
{
    json_key(j, key);
    json_string(j, text);
}

void json_integer(json_stream *j, const char *key, int64_t value)
{
    json_key(j, key);
    fprintf(j->out, "%" PRId64, value);
}

/* JSON has no NAN. */
void json_number(json_stream *j, const char *key, double value)
{
    if (!isfinite(value))
        return;
    json_key(j, key);
    fprintf(j->out, "%.9g", value);
}

void json_us(json_stream *j, const char *key, int64_t ns)
{
    json_key(j, key);
    fprintf(j->out, "%" PRId64 ".%03" PRId64, ns / 1000, ns % 1000);
}

void json_open(json_stream *j, const char *key, char bracket)
{
    if (key)
        json_key(j, key);
    else
        json_comma(j);
    fputc(bracket, j->out);
    j->more = false;
}

void json_close(json_stream *j, char bracket)
{
    fputc(bracket, j->out);
    j->more = true;
}

void json_open_line(json_stream *j)
{
    fputs(j->more ? ",\n{" : "\n{", j->out);
    j->more = false;
}
