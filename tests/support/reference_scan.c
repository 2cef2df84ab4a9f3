/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops along one dim, which must be here as a whole: each element is computed by itself. */
#include "reference_inside.h"

static int axis_of(const trama_call *call)
{
    return (int)integer(call, SCAN_AXIS);
}

/* The number of elements before element i of the line, in the order of the op. */
static int64_t place(const trama_call *call, const point *i)
{
    int64_t at = i->at[axis_of(call)], n = call->in[0].global[axis_of(call)];
    return integer(call, SCAN_REVERSE) ? n - 1 - at : at;
}

/* Element number k of the line through i, in the order of the op. */
static double element_of_line(const trama_call *call, int operand, point i, int64_t k)
{
    int64_t n = call->in[0].global[axis_of(call)];
    i.at[axis_of(call)] = integer(call, SCAN_REVERSE) ? n - 1 - k : k;
    return get(call, operand, &i);
}

static void agree_lines(const trama_call *call)
{
    for (int t = 0; t < call->n_in; t++) {
        agree_all(call, &call->in[t], &call->out[0], 0);
        if (call->in[t].extent[axis_of(call)] != call->in[t].global[axis_of(call)])
            impossible(call, "a dim that must be whole is not");
    }
}

void run_cumsum(const trama_call *call)
{
    point i;
    agree_lines(call);
    FOR_EACH(&call->out[0], &i)
    {
        double sum = 0;
        for (int64_t k = 0; k < place(call, &i) + !integer(call, SCAN_EXCLUSIVE); k++)
            sum += element_of_line(call, 0, i, k);
        put(call, 0, &i, sum);
    }
}

void run_cumprod(const trama_call *call)
{
    point i;
    agree_lines(call);
    FOR_EACH(&call->out[0], &i)
    {
        double product = 1;
        for (int64_t k = 0; k < place(call, &i) + !integer(call, SCAN_EXCLUSIVE); k++)
            product *= element_of_line(call, 0, i, k);
        put(call, 0, &i, product);
    }
}

/* The sum of b_k times all factors a behind k. */
void run_recurrence(const trama_call *call)
{
    point i;
    agree_lines(call);
    FOR_EACH(&call->out[0], &i)
    {
        double sum = 0;
        int64_t last = place(call, &i) - integer(call, SCAN_EXCLUSIVE), late = integer(call, SCAN_LATE);
        for (int64_t k = 0; k <= last; k++) {
            double term = element_of_line(call, 1, i, k);
            for (int64_t f = k + 1; f <= last; f++)
                term *= element_of_line(call, 0, i, f - late);
            sum += term;
        }
        put(call, 0, &i, sum);
    }
}
