/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of extents that are only known when fed, such as those of earlier tokens and of new ones. A sum is the extent of
 * a vector that joins one for each term. */
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#include "onnx.h"
#include "trama_array.h"

enum {
    MOST_KNOWN = 1 << 20, /* of a term that is a number: a vector is as long */
    MOST_SUMS = 1024      /* of a model; each is looked for among all */
};

/* 0: it is none. */
static int64_t term_of(const number *x)
{
    if (x->real || x->open < 0)
        return 0;
    return x->open ? x->open : x->i > 0 && x->i <= MOST_KNOWN ? -x->i : 0;
}

static number number_of_term(int64_t term)
{
    return term < 0 ? number_of(-term) : (number){.open = term};
}

static trama_value *trues_of_term(trama_onnx *graph, int64_t term)
{
    return term < 0 ? trama_fill_at(graph->where, graph->program, TRAMA_BOOL, TRAMA_SHAPE(-term), 1)
                    : onnx_trues_of(graph, term);
}

number onnx_sum_of(trama_onnx *graph, const number *x)
{
    const int64_t a = term_of(&x[0]), b = term_of(&x[1]), terms[] = {min_i64(a, b), max_i64(a, b)};
    number sum = {.real = x->real, .open = OPEN_COMPUTED};
    for (int i = 0; i < 2; i++)
        if (!x[i].real && !x[i].open && !x[i].i)
            return x[1 - i];
    if (!a || !b || terms[1] < 0)
        return sum;
    if (open_base(a) == open_base(b)) {
        sum.open = open_scaled(open_base(a), open_times(a) + open_times(b), 1);
        return sum;
    }
    for (int i = 0; i < graph->sums.n; i++)
        if (graph->sums.at[i].term[0] == terms[0] && graph->sums.at[i].term[1] == terms[1]) {
            sum.open = graph->sums.at[i].origin;
            return sum;
        }
    if (graph->sums.n >= MOST_SUMS)
        return sum;
    trama_value *parts[] = {trues_of_term(graph, terms[0]), trues_of_term(graph, terms[1])};
    trama_value *joined = parts[0] && parts[1] ? trama_concat_at(graph->where, 0, 2, parts) : NULL;
    if (!joined)
        return sum;
    sum.open = open_extent(joined->id, 0);
    *ARRAY_PUSH(&graph->sums) = (onnx_sum){{terms[0], terms[1]}, sum.open};
    *ARRAY_PUSH(&graph->trues) = (onnx_trues){sum.open, joined};
    return sum;
}

number onnx_difference_of(const trama_onnx *graph, const number *x)
{
    const int64_t less = term_of(&x[1]);
    if (less && less == x[0].open)
        return number_of(0);
    for (int i = 0; i < graph->sums.n && less && !x->real; i++)
        for (int k = 0; k < 2; k++)
            if (graph->sums.at[i].origin == x[0].open && graph->sums.at[i].term[k] == less)
                return number_of_term(graph->sums.at[i].term[1 - k]);
    return (number){.real = x->real, .open = OPEN_COMPUTED};
}

void onnx_name_sum(trama_onnx *graph, const trama_value *joined, int d, trama_value *const *parts)
{
    number x[2];
    for (int i = 0; i < 2; i++) {
        const int64_t n = parts[i]->shape.dim[d];
        x[i] = n == TRAMA_ANY ? (number){.open = onnx_origin(graph, parts[i], d)} : number_of(n);
    }
    const number sum = onnx_sum_of(graph, x);
    if (sum.open > 0 && graph->symbols.n < MOST_SUMS)
        *ARRAY_PUSH(&graph->symbols) = (onnx_symbol){"", open_extent(joined->id, d), sum.open};
}

/* ---- Names that are sums ---- */

/* The term that n characters name: a dim of an input, one of which an option gives the extent, or a number; open is
 * OPEN_COMPUTED for others. */
static number named_term(const trama_onnx *graph, const char *at, size_t n)
{
    for (; n && isspace((unsigned char)*at); at++)
        n--;
    while (n && isspace((unsigned char)at[n - 1]))
        n--;
    char *name = memcpy(trama_alloc(n + 1), at, n), *end;
    const int64_t origin = onnx_origin_named(graph, name), given = onnx_given_extent(graph, name);
    const long long known = given == TRAMA_ANY ? strtoll(name, &end, 10) : given;
    const bool is_known = given != TRAMA_ANY || (n && !*end);
    free(name);
    return origin ? (number){.open = origin} : is_known ? number_of(known) : (number){.open = OPEN_COMPUTED};
}

void onnx_read_sums(trama_onnx *graph)
{
    for (int i = 0; i < graph->symbols.n; i++) {
        onnx_symbol *symbol = &graph->symbols.at[i];
        const char *plus = strchr(symbol->name, '+');
        if (!plus)
            continue;
        const number x[] = {named_term(graph, symbol->name, (size_t)(plus - symbol->name)),
                            named_term(graph, plus + 1, strlen(plus + 1))};
        const number sum = onnx_sum_of(graph, x);
        if (sum.open > 0)
            symbol->same_as = sum.open;
    }
}
