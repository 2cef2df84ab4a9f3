/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops that bring lines to the mean 0 and the mean square 1. */
#include "reference_inside.h"

/* The mean of f over the line through an index. */
typedef double of_element(const trama_call *call, const point *i, double mean);

static double mean_of(const trama_call *call, const point *i, of_element *f, double mean)
{
    const int axis = (int)integer(call, NORM_AXIS);
    const trama_view *x = &call->in[0];
    double sum = 0;
    point at = *i;
    for (at.at[axis] = 0; at.at[axis] < x->global[axis]; at.at[axis]++)
        sum += f(call, &at, mean);
    return sum / (double)(x->global[axis] > 0 ? x->global[axis] : 1);
}

static double first_of(const trama_call *call, const point *i, double mean)
{
    return get(call, 0, i) - mean;
}

static double square_of(const trama_call *call, const point *i, double mean)
{
    const double x = get(call, 0, i) - mean;
    return x * x;
}

static double product_of(const trama_call *call, const point *i, double mean)
{
    return get(call, 0, i) * get(call, 1, i) - mean;
}

static double centre(const trama_call *call, const point *i)
{
    return integer(call, NORM_CENTRED) ? mean_of(call, i, first_of, 0) : 0;
}

void run_norm(const trama_call *call)
{
    point i;
    agree_all(call, &call->in[0], &call->out[0], 0);
    for (int result = 1; result >= 0; result--)
        FOR_EACH(&call->out[result], &i)
        {
            const double mean = centre(call, &i),
                         r = 1 / sqrt(mean_of(call, &i, square_of, mean) + real(call, NORM_EPS));
            put(call, result, &i, result ? r : (get(call, 0, &i) - mean) * r);
        }
}

void run_norm_grad(const trama_call *call)
{
    point i;
    for (int t = 0; t < 3; t++)
        agree_all(call, &call->in[t], &call->out[0], 0);
    FOR_EACH(&call->out[0], &i)
    put(call, 0, &i,
        get(call, 2, &i) * (get(call, 0, &i) - centre(call, &i) - get(call, 1, &i) * mean_of(call, &i, product_of, 0)));
}
