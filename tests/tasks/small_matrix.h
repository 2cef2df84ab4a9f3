/* SPDX-License-Identifier: Apache-2.0 */
/* Values that builders make of a small matrix, in several layouts on four processes, against wanted numbers. */
#ifndef SMALL_MATRIX_H
#define SMALL_MATRIX_H

#include "eager_harness.h"

enum { ROWS = 5, COLUMNS = 7 };
static const char *const forms[] = {"R,R", "S(0),S(1)", "S(1),S(0)", "S(0)[1],S(0)[0]"};
static double numbers[ROWS][COLUMNS];

typedef struct setting {
    eager g;
    trama_mesh *mesh;
    trama_value *x;
} setting;

static inline setting setting_of(const char *layout)
{
    setting s = {eager_begin(), mesh_of("dp=2,mp=2"), NULL};
    for (int i = 0; i < ROWS; i++)
        for (int j = 0; j < COLUMNS; j++)
            numbers[i][j] = (double)((3 * i + 5 * j) % 11 - 4) / 2; /* some are 0 */
    s.x = trama_tensor(s.g.p, TRAMA_F64, TRAMA_SHAPE(ROWS, COLUMNS), numbers, s.mesh, layout);
    return s;
}

static inline void end(setting *s)
{
    eager_end_now(&s->g);
    trama_mesh_destroy(&s->mesh);
}

/* The value has the wanted shape, and its numbers but for roundings. */
static inline void check(setting *s, trama_value *v, trama_shape shape, const double *wanted, const char *what)
{
    double is[ROWS * COLUMNS * COLUMNS];
    must(trama_program_status(s->g.p));
    demand(trama_shape_equal(trama_value_shape(v), shape), "%s has another shape", what);
    trama_value *wide = trama_cast(v, TRAMA_F64);
    must(trama_read(s->g.e, wide, is, (size_t)trama_shape_count(shape) * sizeof *is));
    for (int64_t i = 0; i < trama_shape_count(shape); i++)
        demand(is[i] == wanted[i] || fabs(is[i] - wanted[i]) <= 1e-12 * fmax(1, fabs(wanted[i])),
               "%s: element %" PRId64 " is %.17g instead of %.17g", what, i, is[i], wanted[i]);
}

/* The call on the program p fails with a message that has the words, which the program then forgets. */
#define REFUSED(call, wanted)                                                                                          \
    do {                                                                                                               \
        demand(!(call) && strstr(trama_program_error(p), wanted), "%s: %s", #call, trama_program_error(p));            \
        trama_program_clear_error(p);                                                                                  \
    } while (0)

#endif
