/* SPDX-License-Identifier: Apache-2.0 */
#include "trace_names.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "must.h"

/* ---- Roles ---- */

static bool begins(const char *name, const char *with)
{
    return !strncmp(name, with, strlen(with));
}

static bool ends(const char *name, const char *with)
{
    size_t length = strlen(name), end = strlen(with);
    return length > end && !strcmp(name + length - end, with);
}

bool trace_only_orders(const char *name)
{
    return !strcmp(name, "reshard.order") || !strcmp(name, "memory.order");
}

trace_role trace_role_of(const char *name)
{
    return begins(name, "update.")    ? ROLE_UPDATE
           : begins(name, "merge.")   ? ROLE_MERGE
           : begins(name, "reshard.") ? ROLE_RESHARD
           : ends(name, ".grad")      ? ROLE_BACKWARD
                                      : ROLE_FORWARD;
}

const char *trace_role_text(trace_role role)
{
    static const char *const texts[N_ROLES] = {
        [ROLE_FORWARD] = "forward", [ROLE_BACKWARD] = "backward", [ROLE_UPDATE] = "update",
        [ROLE_MERGE] = "merge",     [ROLE_RESHARD] = "reshard",
    };
    return texts[role];
}

/* ---- Colours ---- */

/* Hues in degrees; each family is a grid of hue and lightness, in which names take the next free cell. */
static const struct family {
    double hue_from, hue_to, saturation;
} families[N_ROLES] = {
    [ROLE_FORWARD] = {130, 235, 0.55}, [ROLE_BACKWARD] = {0, 38, 0.75},   [ROLE_UPDATE] = {44, 62, 0.75},
    [ROLE_MERGE] = {310, 342, 0.55},   [ROLE_RESHARD] = {258, 290, 0.22},
};
enum { HUES = 8, LIGHTS = 5, CELLS = HUES * LIGHTS };

static double channel(double hue, double saturation, double light, double offset)
{
    double k = fmod(offset + hue / 30, 12), a = saturation * fmin(light, 1 - light);
    return light - a * fmax(-1, fmin(fmin(k - 3, 9 - k), 1));
}

/* The cell of a family; past the last one the lightness shifts a little with each round. */
static void write_color(char *color, trace_role role, int cell)
{
    const struct family *f = &families[role];
    int round = cell / CELLS;
    double hue = f->hue_from + (f->hue_to - f->hue_from) * (cell % HUES) / (HUES - 1);
    double light = 0.36 + 0.09 * (cell / HUES % LIGHTS) + 0.004 * round;
    long rgb[3];
    for (int i = 0; i < 3; i++)
        rgb[i] = lround(255 * fmin(channel(hue, f->saturation, light, (const double[]){0, 8, 4}[i]), 1));
    snprintf(color, 8, "#%02x%02x%02x", (unsigned)rgb[0] & 255, (unsigned)rgb[1] & 255, (unsigned)rgb[2] & 255);
}

/* FNV-1a */
static uint32_t hash(const char *text)
{
    uint32_t h = 2166136261u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 16777619u;
    return h;
}

static bool is_taken(const trace *t, const char *color)
{
    for (int i = 0; i < t->n_names; i++)
        if (!strcmp(t->names[i].color, color))
            return true;
    return false;
}

static int by_text(const void *first, const void *second)
{
    return strcmp((*(trace_name *const *)first)->text, (*(trace_name *const *)second)->text);
}

void trace_color_names(trace *t)
{
    trace_name **sorted = must_allocate(t->n_names, sizeof *sorted);
    for (int i = 0; i < t->n_names; i++)
        sorted[i] = &t->names[i];
    qsort(sorted, (size_t)t->n_names, sizeof *sorted, by_text);
    for (int i = 0; i < t->n_names; i++) {
        char color[8];
        int first = (int)(hash(sorted[i]->text) % CELLS), round = 0, n = 0;
        for (;;) {
            write_color(color, sorted[i]->role, (first + n) % CELLS + round * CELLS);
            if (!is_taken(t, color) || round > 1000)
                break;
            n = n + 1 < CELLS ? n + 1 : 0;
            round += n == 0;
        }
        strcpy(sorted[i]->color, color);
    }
    free(sorted);
}
