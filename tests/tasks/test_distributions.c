/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers of several distributions: from their definitions, the same on every mesh. */
#include "reference.h"
#include "small_matrix.h"
#include "trama_complex.h"

enum { MANY = 4096 };

/* The value, read on the mesh of the setting in the layout. */
static void read_on(setting *s, trama_value *v, const char *layout, double *is)
{
    trama_value *there = trama_reshard(trama_cast(v, TRAMA_F64), s->mesh, layout);
    must(trama_program_status(s->g.p));
    must(trama_read(s->g.e, there, is, MANY * sizeof *is));
}

static double u_of(uint32_t stream, int64_t i)
{
    return reference_uniform(11, stream, 3, (uint64_t)i);
}

START_TEST(numbers_are_those_of_their_formulas_in_every_layout)
{
    static const char *const lines[] = {"R,R", "S(0),R", "R,S(0)"};
    static double is[MANY];
    start();
    for (size_t l = 0; l < sizeof lines / sizeof *lines; l++) {
        setting s = setting_of("R,R");
        trama_shape shape = TRAMA_SHAPE(MANY);
        read_on(&s, trama_normal_fixed(s.g.p, TRAMA_F64, shape, 5, 2, 11, 1, 3), lines[l], is);
        for (int64_t i = 0; i < MANY; i++) {
            const double u = u_of(1, i), v = u_of(1 + (UINT32_C(1) << 31), i);
            const double wanted = 5 + 2 * sqrt(-2 * log(1 - u)) * cos(2 * acos(-1) * v);
            demand(fabs(is[i] - wanted) < 1e-12, "normal %d is %.17g, not %.17g", (int)i, is[i], wanted);
        }
        trama_value *z = trama_normal_fixed(s.g.p, TRAMA_C128, shape, 5, 2, 11, 1, 3);
        for (int part = 0; part < 2; part++) {
            read_on(&s, part ? trama_imag(z) : trama_real(z), lines[l], is);
            for (int64_t i = 0; i < MANY; i++) {
                const double u = u_of(1, i), angle = 2 * acos(-1) * u_of(1 + (UINT32_C(1) << 31), i);
                const double wanted = (part ? 0 : 5) + 2 * sqrt(-log(1 - u)) * (part ? sin(angle) : cos(angle));
                demand(fabs(is[i] - wanted) < 1e-12, "part %d of normal %d is %.17g, not %.17g", part, (int)i, is[i],
                       wanted);
            }
        }
        read_on(&s, trama_bernoulli_fixed(s.g.p, shape, 0.3, 11, 2, 3), lines[l], is);
        for (int64_t i = 0; i < MANY; i++)
            demand(is[i] == (u_of(2, i) < 0.3), "bernoulli %d is %g", (int)i, is[i]);
        read_on(&s, trama_random_integers_fixed(s.g.p, TRAMA_I16, shape, -3, 4, 11, 3, 3), lines[l], is);
        for (int64_t i = 0; i < MANY; i++) {
            const double w = u_of(3, i) + ldexp(u_of(3 + (UINT32_C(1) << 31), i), -24);
            demand(is[i] == floor(7 * w) - 3, "integer %d is %g, not %g", (int)i, is[i], floor(7 * w) - 3);
        }
        end(&s);
    }
    stop();
}
END_TEST

START_TEST(a_permutation_has_each_number_once_and_another_order_in_each_run)
{
    static double first[MANY], second[MANY];
    static bool seen[MANY];
    int moved = 0, differ = 0;
    start();
    setting s = setting_of("R,R");
    read_on(&s, trama_permutation(s.g.p, MANY, 1, 2), "S(0),R", first);
    read_on(&s, trama_permutation(s.g.p, MANY, 1, 2), "R,R", second);
    for (int i = 0; i < MANY; i++) {
        const int at = (int)first[i];
        demand(at >= 0 && at < MANY && !seen[at], "number %d is %g", i, first[i]);
        seen[at] = true;
        moved += at != i;
        differ += first[i] != second[i];
    }
    read_on(&s, trama_permutation_fixed(s.g.p, MANY, 1, 2, 7), "S(0),R", first);
    read_on(&s, trama_permutation_fixed(s.g.p, MANY, 1, 2, 7), "R,R", second);
    demand(memcmp(first, second, sizeof first) == 0, "a step's order is another in another layout");
    demand(moved > MANY * 9 / 10 && differ > MANY * 9 / 10, "%d places moved, %d differ", moved, differ);
    end(&s);
    stop();
}
END_TEST

/* Bounds of 5 standard errors. */
START_TEST(moments_are_those_of_the_distributions)
{
    static double is[MANY];
    double mean = 0, square = 0, fourth = 0, true_ = 0;
    int64_t counts[10] = {0};
    start();
    setting s = setting_of("R,R");
    read_on(&s, trama_normal(s.g.p, TRAMA_F32, TRAMA_SHAPE(MANY), 0, 1, 5, 1), "S(0),S(0)", is);
    for (int i = 0; i < MANY; i++) {
        mean += is[i] / MANY;
        square += is[i] * is[i] / MANY;
        fourth += pow(is[i], 4) / MANY;
    }
    demand(fabs(mean) < 5 / sqrt(MANY) && fabs(square - 1) < 5 * sqrt(2.0 / MANY) &&
               fabs(fourth - 3) < 5 * sqrt(96.0 / MANY),
           "moments %g, %g, %g", mean, square, fourth);
    read_on(&s, trama_bernoulli(s.g.p, TRAMA_SHAPE(MANY), 0.8, 5, 2), "R,R", is);
    for (int i = 0; i < MANY; i++)
        true_ += is[i] / MANY;
    demand(fabs(true_ - 0.8) < 5 * sqrt(0.16 / MANY), "%g are true", true_);
    read_on(&s, trama_random_integers(s.g.p, TRAMA_I64, TRAMA_SHAPE(MANY), 100, 110, 5, 3), "R,R", is);
    for (int i = 0; i < MANY; i++) {
        demand(is[i] >= 100 && is[i] < 110, "an integer is %g", is[i]);
        counts[(int)is[i] - 100]++;
    }
    double chi = 0;
    for (int k = 0; k < 10; k++)
        chi += pow((double)counts[k] - MANY / 10.0, 2) / (MANY / 10.0);
    demand(chi < 33.7, "chi square of 9 degrees of freedom is %g, above the bound of 1 in 10,000", chi);
    end(&s);
    stop();
}
END_TEST

START_TEST(wrong_calls_are_refused_with_the_reason)
{
    trama_program *p = trama_program_create();
    REFUSED(trama_normal(p, TRAMA_I32, TRAMA_SHAPE(3), 0, 1, 1, 1),
            "normal numbers are floats or complex numbers, not i32");
    REFUSED(trama_bernoulli(p, TRAMA_SHAPE(3), 1.5, 1, 1), "probability 1.5; it is 0 to 1");
    REFUSED(trama_random_integers(p, TRAMA_F32, TRAMA_SHAPE(3), 0, 1, 1, 1), "f32 is no type of integers");
    REFUSED(trama_random_integers(p, TRAMA_I32, TRAMA_SHAPE(3), 5, 5, 1, 1), "1 to 2^32 numbers");
    REFUSED(trama_random_integers(p, TRAMA_I64, TRAMA_SHAPE(3), INT64_MIN, INT64_MAX, 1, 1), "1 to 2^32 numbers");
    trama_program_destroy(&p);
}
END_TEST

TESTS(numbers_are_those_of_their_formulas_in_every_layout,
      a_permutation_has_each_number_once_and_another_order_in_each_run, moments_are_those_of_the_distributions,
      wrong_calls_are_refused_with_the_reason)
