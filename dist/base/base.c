/* SPDX-License-Identifier: Apache-2.0 */
/* Errors, text, and the end of the process on a fatal error. The thread's last message is the only state of dist. */
#include "base.h"

#include <stdio.h>
#include <string.h>

static _Thread_local char last_error[1024];

const char *trama_status_text(trama_status status)
{
    static const char *const texts[] = {
#define STATUS_TEXT(name, text) [name] = text,
        TRAMA_STATUS_LIST(STATUS_TEXT)
#undef STATUS_TEXT
    };
    return (unsigned)status < sizeof texts / sizeof *texts ? texts[status] : "unknown status";
}

const char *trama_error(void)
{
    return last_error;
}

#define VERSION_TEXT_OF(major, minor, patch) #major "." #minor "." #patch
#define VERSION_TEXT(major, minor, patch) VERSION_TEXT_OF(major, minor, patch)

const char *trama_version(void)
{
    return VERSION_TEXT(TRAMA_VERSION_MAJOR, TRAMA_VERSION_MINOR, TRAMA_VERSION_PATCH);
}

trama_status trama_fail(trama_where where, trama_status status, const char *format, ...)
{
    char message[sizeof last_error]; /* the arguments may point into the last message */
    int n = where.file ? snprintf(message, sizeof message, "%s:%d: ", where.file, where.line) : 0;
    va_list arguments;
    va_start(arguments, format);
    if (n < (int)sizeof message)
        vsnprintf(message + n, sizeof message - (size_t)n, format, arguments);
    va_end(arguments);
    memcpy(last_error, message, sizeof message);
    return status;
}

void trama_text_free(char **given)
{
    if (!given)
        return;
    free(*given);
    *given = NULL;
}

/* ---- The end of the process ---- */

static fatal_tell *tells;
static void *told;

void fatal_to(fatal_tell *tell, void *data)
{
    tells = tell;
    told = data;
}

void fatal(const char *format, ...)
{
    char message[sizeof last_error];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (tells)
        tells(told, message);
    else
        fprintf(stderr, "trama: %s\n", message);
    abort();
}

void text_add(text *t, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    va_list again;
    va_copy(again, arguments);
    int n = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    if (n > 0) {
        if (t->n + (size_t)n + 1 > t->room) {
            t->room = 2 * (t->n + (size_t)n + 1);
            t->at = trama_resize(t->at, t->room);
        }
        vsnprintf(t->at + t->n, (size_t)n + 1, format, again);
        t->n += (size_t)n;
    }
    va_end(again);
}

char *text_take(text *t)
{
    char *taken = t->at ? t->at : trama_text_copy("");
    *t = (text){0};
    return taken;
}

char *text_result(text *t, const char *call)
{
    char *result = text_take(t);
    if (!memory_status(NOWHERE, call))
        return result;
    free(result);
    return NULL;
}

trama_status text_give(text *t, const char *call, char **out)
{
    char *result = text_result(t, call);
    if (result)
        *out = result;
    return result ? TRAMA_OK : TRAMA_E_MEMORY;
}
