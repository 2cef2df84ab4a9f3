/* SPDX-License-Identifier: Apache-2.0 */
/* Reference ops along one dim, which must be here as a whole: each element is computed by itself. */
#include <stdlib.h>

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

/* ---- Chosen elements ---- */

static bool is_before(double a, double b, bool descending)
{
    return descending ? a > b : a < b;
}

/* The extreme of the elements up to i, or before it: the first of equals. */
static void run_extreme(const trama_call *call, bool max)
{
    point i;
    agree_lines(call);
    agree_all(call, &call->out[1], &call->out[0], 0);
    FOR_EACH(&call->out[0], &i)
    {
        const int64_t n = call->in[0].global[axis_of(call)];
        double most = max ? -INFINITY : INFINITY;
        int64_t at = n;
        for (int64_t k = 0; k < place(call, &i) + !integer(call, SCAN_EXCLUSIVE); k++) {
            const double x = element_of_line(call, 0, i, k);
            if (at < n && !is_before(x, most, max))
                continue;
            most = x;
            at = integer(call, SCAN_REVERSE) ? n - 1 - k : k;
        }
        put(call, 0, &i, most);
        put(call, 1, &i, (double)at);
    }
}

void run_cummax(const trama_call *call)
{
    run_extreme(call, true);
}

void run_cummin(const trama_call *call)
{
    run_extreme(call, false);
}

/* NaN is larger than all numbers. */
static bool sorts_before(double a, double b, bool descending)
{
    const double less = descending ? b : a, more = descending ? a : b;
    return isnan(more) ? !isnan(less) : less < more;
}

typedef struct placed {
    double x;
    int64_t at;
} placed;

static int compare(const placed *a, const placed *b, bool descending)
{
    if (sorts_before(a->x, b->x, descending) || sorts_before(b->x, a->x, descending))
        return sorts_before(a->x, b->x, descending) ? -1 : 1;
    return (a->at > b->at) - (a->at < b->at);
}

static int compare_rising(const void *a, const void *b)
{
    return compare(a, b, false);
}

static int compare_falling(const void *a, const void *b)
{
    return compare(a, b, true);
}

/* Equal elements keep their order. */
void run_sort(const trama_call *call)
{
    const int axis = axis_of(call);
    const int64_t n = call->in[0].global[axis], k = call->out[0].extent[axis];
    point i;
    if (call->in[0].extent[axis] != n || k != call->out[0].global[axis])
        impossible(call, "a dim that must be whole is not");
    for (int o = 0; o < 2; o++)
        for (int d = 0; d < call->in[0].ndim; d++)
            if (d != axis)
                agree(call, &call->in[0], d, &call->out[o], d);
    placed *line = calloc((size_t)n + 1, sizeof *line);
    FOR_EACH(&call->in[0], &i)
    {
        point p = i;
        if (i.at[axis] != 0)
            continue;
        for (p.at[axis] = 0; p.at[axis] < n; p.at[axis]++)
            line[p.at[axis]] = (placed){get(call, 0, &p), p.at[axis]};
        qsort(line, (size_t)n, sizeof *line, integer(call, SORT_DESCENDING) ? compare_falling : compare_rising);
        for (p.at[axis] = 0; p.at[axis] < k; p.at[axis]++) {
            put(call, 0, &p, line[p.at[axis]].x);
            put(call, 1, &p, (double)line[p.at[axis]].at);
        }
    }
    free(line);
}

void run_top_k(const trama_call *call)
{
    run_sort(call);
}
