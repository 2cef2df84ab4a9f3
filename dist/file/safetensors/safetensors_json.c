/* SPDX-License-Identifier: Apache-2.0 */
/* The JSON of headers and indices, which may come from anybody: it is refused before cJSON could take much memory, and
 * numbers and members are read with their checks. It knows no tensors. */
#include "safetensors_json.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "box_file.h"
#include "checkpoint.h"

/* ---- Errors ---- */

char *json_shown(const char *name)
{
    char *s = trama_text_copy(name);
    for (char *at = s; *at; at++)
        if ((unsigned char)*at < ' ' || *at == 127)
            *at = '?';
    if (strlen(s) > 200)
        strcpy(s + 197, "...");
    return s;
}

trama_status safetensors_refuse(const char *path, trama_status status, const char *tensor, const char *format, ...)
{
    text reason = {0};
    char words[400], *name = json_shown(tensor ? tensor : "");
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(words, sizeof words, format, arguments);
    va_end(arguments);
    text_add(&reason, "%s%s%s%s", tensor ? "tensor " : "", name, tensor ? ": " : "", words);
    free(name);
    trama_fail(NOWHERE, status, "%s: %s", path, reason.at);
    free(reason.at);
    return status;
}

/* ---- JSON ---- */

/* Zero bytes would end names early. */
static bool has_zero(const char *words, size_t n)
{
    if (memchr(words, 0, n))
        return true;
    for (size_t i = 0; i + 5 < n; i++)
        if (words[i] == '\\') {
            if (!strncmp(words + i + 1, "u0000", 5))
                return true;
            i++;
        }
    return false;
}

/* A parsed element takes 40 times the bytes of the shortest one, and no writer makes so short ones only. */
static bool is_crowded(const char *words, size_t n)
{
    size_t commas = 0;
    for (const char *at = words; (at = memchr(at, ',', n - (size_t)(at - words))); at++)
        commas++;
    return commas > 64 + n / 4;
}

static bool is_blank(const char *words)
{
    return words[strspn(words, " \t\r\n")] == 0;
}

/* words [n] and a zero byte behind them */
static trama_status parse(const char *path, const char *words, size_t n, cJSON **root)
{
    const char *end = NULL;
    if (*words != '{')
        return safetensors_refuse(path, TRAMA_E_SYSTEM, NULL, "its header is no JSON object" AGAIN);
    if (has_zero(words, n) || !name_is_utf8(words))
        return safetensors_refuse(path, TRAMA_E_SYSTEM, NULL, "its header is not UTF-8, or has a zero byte" AGAIN);
    if (is_crowded(words, n))
        return safetensors_refuse(path, TRAMA_E_SYSTEM, NULL, "its header has more elements than tensors need" AGAIN);
    *root = cJSON_ParseWithLengthOpts(words, n + 1, &end, false);
    if (!*root || !is_blank(end))
        return safetensors_refuse(path, TRAMA_E_SYSTEM, NULL, "its header is no JSON after byte %d" AGAIN,
                                  end ? (int)(end - words) : 0);
    return TRAMA_OK;
}

trama_status json_read(const char *path, int descriptor, int64_t at, int64_t bytes, cJSON **root)
{
    char *words = trama_try_alloc((size_t)bytes + 1);
    if (!words)
        return safetensors_refuse(path, TRAMA_E_MEMORY, NULL, "no memory for its header of %" PRId64 " bytes", bytes);
    trama_status status =
        file_read_at(descriptor, words, bytes, at) ? TRAMA_OK : checkpoint_failed(path, "cannot be read", errno);
    if (!status)
        status = parse(path, words, (size_t)bytes, root);
    free(words);
    return status;
}

bool json_number(const cJSON *item, int64_t *x)
{
    const bool good = cJSON_IsNumber(item) && item->valuedouble >= 0 && item->valuedouble <= 0x1p53 &&
                      item->valuedouble == floor(item->valuedouble);
    *x = good ? (int64_t)item->valuedouble : 0;
    return good;
}

const cJSON *json_member(const cJSON *object, const char *name)
{
    const cJSON *item, *found = NULL;
    cJSON_ArrayForEach(item, object) if (!strcmp(item->string, name))
    {
        if (found)
            return NULL;
        found = item;
    }
    return found;
}
