/* SPDX-License-Identifier: Apache-2.0 */
/* Values of command line options, each checked as a whole: nothing before, nothing after, nothing out of range. */
#include "arguments.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

error_t argument_unknown(int key, const char *text, const struct argp_state *state)
{
    if (key == ARGP_KEY_ARG)
        argp_error(state, "'%s': there are only options", text);
    return ARGP_ERR_UNKNOWN;
}

/* Whether text begins with a whole number of the range; *end is behind it. */
static bool read_integer(const char *text, int64_t low, int64_t high, char **end, int64_t *number)
{
    errno = 0;
    long long read = strtoll(text, end, 10);
    *number = read;
    return !isspace((unsigned char)*text) && *end != text && !errno && read >= low && read <= high;
}

int64_t argument_integer(const struct argp_state *state, const char *option, const char *text, int64_t low,
                         int64_t high)
{
    char *end;
    int64_t number;
    if (!read_integer(text, low, high, &end, &number) || *end)
        argp_error(state, "%s '%s': takes a whole number from %lld to %lld", option, text, (long long)low,
                   (long long)high);
    return number;
}

uint64_t argument_unsigned(const struct argp_state *state, const char *option, const char *text)
{
    char *end = NULL;
    errno = 0;
    unsigned long long number = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
    if (!end || *end || errno)
        argp_error(state, "%s '%s': takes a whole number from 0 to 18446744073709551615", option, text);
    return number;
}

/* Whether the whole text is a finite number. */
static bool read_number(const char *text, double *number)
{
    char *end;
    *number = strtod(text, &end);
    return !isspace((unsigned char)*text) && end != text && !*end && isfinite(*number);
}

double argument_number(const struct argp_state *state, const char *option, const char *text)
{
    double number;
    if (!read_number(text, &number))
        argp_error(state, "%s '%s': takes a number", option, text);
    return number;
}

double argument_positive(const struct argp_state *state, const char *option, const char *text)
{
    double number;
    if (!read_number(text, &number) || number <= 0)
        argp_error(state, "%s '%s': takes a number above 0", option, text);
    return number;
}

int argument_list(const struct argp_state *state, const char *option, const char *text, int64_t low, int64_t high,
                  int most, int64_t *list)
{
    const char *from = text;
    for (int n = 0; n < most; n++) {
        char *end;
        if (!read_integer(from, low, high, &end, &list[n]))
            break;
        if (!*end)
            return n + 1;
        if (*end != ',')
            break;
        from = end + 1;
    }
    argp_error(state, "%s '%s': takes 1 to %d whole numbers from %lld to %lld, with commas between", option, text, most,
               (long long)low, (long long)high);
    return 0;
}

int argument_word(const struct argp_state *state, const char *option, const char *text, int n, const char *const *words)
{
    char known[256] = "";
    for (int i = 0; i < n; i++) {
        if (!strcmp(text, words[i]))
            return i;
        size_t length = strlen(known);
        snprintf(known + length, sizeof known - length, "%s%s", i == 0 ? "" : i < n - 1 ? ", " : " or ", words[i]);
    }
    argp_error(state, "%s '%s': takes %s", option, text, known);
    return -1;
}

void argument_device(const struct argp_state *state, const char *option, const char *text)
{
    static const char *const kinds[] = {"cpu", "gpu", "auto"};
    argument_word(state, option, text, 3, kinds);
    setenv("TRAMA_DEVICE", text, 1); /* trama_start reads it */
}

trama_shape argument_shape(const struct argp_state *state, const char *option, const char *text)
{
    const int64_t most = (int64_t)1 << 48;
    int64_t extents[TRAMA_MAX_NDIM] = {0}, count = 1;
    if (!*text)
        return TRAMA_SCALAR;
    int n = argument_list(state, option, text, 0, most, TRAMA_MAX_NDIM, extents);
    for (int d = 0; d < n; d++) {
        int64_t extent = extents[d] ? extents[d] : 1;
        if (count > most / extent)
            argp_error(state, "%s '%s': has more than %lld elements", option, text, (long long)most);
        count *= extent;
    }
    return trama_shape_of(n, extents);
}

trama_layout argument_layout(const struct argp_state *state, const char *option, const char *text,
                             const trama_mesh *mesh, int ndim)
{
    trama_layout layout = {0};
    if (trama_layout_parse(mesh, ndim, text, &layout))
        argp_error(state, "%s '%s': %s", option, text, trama_error());
    return layout;
}

static bool known_axis(const char *name, int n, const char *const *names)
{
    for (int i = 0; name && i < n; i++)
        if (!strcmp(name, names[i]))
            return true;
    return false;
}

trama_mesh *argument_mesh(const struct argp_state *state, const char *option, const char *text, int n,
                          const char *const *names)
{
    trama_mesh *mesh = trama_mesh_create(text);
    if (!mesh)
        argp_error(state, "%s '%s': %s", option, text, trama_error());
    for (int axis = 0; mesh && names && axis < trama_mesh_ndim(mesh); axis++) {
        const char *name = trama_mesh_axis_name(mesh, axis);
        if (trama_mesh_extent(mesh, axis) == 1 || known_axis(name, n, names))
            continue;
        char known[128] = "";
        for (int i = 0; i < n; i++)
            snprintf(known + strlen(known), sizeof known - strlen(known), "%s%s=N", i ? ", " : "", names[i]);
        argp_error(state, "%s '%s': axis %d is %s; this program supports %s", option, text, axis,
                   name ? name : "without a name", known);
    }
    return mesh;
}
