/* SPDX-License-Identifier: Apache-2.0 */
/* One attempt of a fuzzer at the text forms: any bytes either parse, and then print and parse back to the same, or are
 * refused with a message. Ends the process where neither holds. */
#ifndef FUZZ_TEXT_H
#define FUZZ_TEXT_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "layout.h"

static inline void fuzz_demand(bool holds, const char *what, const char *text_)
{
    if (holds)
        return;
    fprintf(stderr, "fuzz: %s: '%s'\n", what, text_);
    abort();
}

static inline void fuzz_layout(const trama_mesh *mesh, int ndim, const char *source)
{
    trama_layout l, again;
    if (trama_layout_parse(mesh, ndim, source, &l)) {
        fuzz_demand(*trama_error() != 0, "refused without a word", source);
        return;
    }
    fuzz_demand(!layout_check(mesh, ndim, &l, true), "an illegal layout is taken", source);
    char *axes = trama_layout_text(mesh, &l), *mapping = trama_layout_mapping(mesh, ndim, &l);
    fuzz_demand(!trama_layout_parse(mesh, ndim, axes, &again) && trama_layout_equal(&l, &again), "placements change",
                axes);
    if (!layout_has(&l, TRAMA_OPEN))
        fuzz_demand(!trama_layout_parse(mesh, ndim, mapping, &again) && trama_layout_equal(&l, &again),
                    "the mapping changes", mapping);
    free(axes);
    free(mapping);
}

/* The bytes are a mesh, a digit for the tensor's dims, and a layout, with '|' between them. */
static inline void fuzz_text(const unsigned char *bytes, size_t n)
{
    char *source = calloc(n + 1, 1), *layout;
    memcpy(source, bytes, n);
    layout = strchr(source, '|');
    if (layout)
        *layout++ = 0;
    trama_mesh *mesh = trama_mesh_create(source);
    fuzz_demand(mesh || *trama_error(), "refused without a word", source);
    if (mesh && trama_mesh_size(mesh) <= 4096) {
        char *printed = trama_mesh_text(mesh);
        trama_mesh *again = trama_mesh_create(printed);
        fuzz_demand(again && trama_mesh_equal(mesh, again), "a mesh changes", printed);
        trama_mesh_destroy(&again);
        free(printed);
        if (layout && *layout)
            fuzz_layout(mesh, (unsigned char)*layout % 9, layout + 1);
    }
    trama_mesh_destroy(&mesh);
    free(source);
}

#endif
