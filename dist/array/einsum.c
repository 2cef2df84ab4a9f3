/* SPDX-License-Identifier: Apache-2.0 */
/* Einstein's sums: a text of letters into transposes, products and sums of pairs of operands. */
#include <ctype.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "einsum_path.h"
#include "families.h"
#include "trama_array.h"
#include "trama_composed.h"

enum { MOST_OPERANDS = 32 };

/* A tensor and the labels of its dims. */
typedef struct term {
    trama_value *value;
    int ndim;
    signed char label[TRAMA_MAX_NDIM];
} term;

typedef struct sum {
    trama_where where;
    trama_program *program;
    const char *text;
    int n;
    term term[MOST_OPERANDS], result;
    int64_t extent[LABELS];
    label_set seen;
} sum;

static bool refuse(const sum *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(const sum *s, const char *format, ...)
{
    char problem[160];
    va_list list;
    va_start(list, format);
    vsnprintf(problem, sizeof problem, format, list);
    va_end(list);
    return program_fail(s->program, s->where, TRAMA_E_ARGUMENT, "einsum \"%s\": %s", s->text, problem), false;
}

static label_set labels_of(const term *t)
{
    label_set all = 0;
    for (int d = 0; d < t->ndim; d++)
        all |= label_bit(t->label[d]);
    return all;
}

static int dim_with(const term *t, int label)
{
    for (int d = 0; d < t->ndim; d++)
        if (t->label[d] == label)
            return d;
    return -1;
}

/* ---- The text ---- */

static int label_of_letter(char c)
{
    return islower((unsigned char)c) ? c - 'a' : isupper((unsigned char)c) ? 26 + c - 'A' : -1;
}

/* Reads the letters of one tensor up to a comma, an arrow or the end. "..." has `dots` dims; -1: as many as are left of
 * ndim. */
static bool read_labels(const sum *s, const char **at, int dots, int ndim, term *t)
{
    const size_t n = strcspn(*at, ",-");
    const char *end = *at + n;
    int letters = 0;
    bool dotted = false;
    for (const char *c = *at; c < end; c++)
        letters += label_of_letter(*c) >= 0;
    t->ndim = 0;
    for (const char *c = *at; c < end; c++) {
        const bool three = !strncmp(c, "...", 3) && !dotted;
        const int fill = three ? (dots < 0 ? ndim - letters : dots) : 1;
        if (isspace((unsigned char)*c))
            continue;
        if (!three && label_of_letter(*c) < 0)
            return refuse(s, "'%c' is neither a letter nor one \"...\" of a tensor", *c);
        if (t->ndim + fill > TRAMA_MAX_NDIM || fill < 0)
            return refuse(s, "%.*s has other than %d dims", (int)n, *at, ndim);
        for (int i = fill; i > 0; i--)
            t->label[t->ndim++] = (signed char)(three ? LETTERS + i - 1 : label_of_letter(*c));
        dotted |= three;
        c += three ? 2 : 0;
    }
    *at = end;
    if (ndim >= 0 && t->ndim != ndim)
        return refuse(s, "%.*s has %d dims, and the operand %d", (int)n, *at - n, t->ndim, ndim);
    return true;
}

/* Extents of 1 stand for any. */
static bool note_extents(sum *s, const term *t)
{
    for (int d = 0; d < t->ndim; d++) {
        const int label = t->label[d];
        int64_t *extent = &s->extent[label];
        const int64_t its = t->value->shape.dim[d];
        const int first = dim_with(t, label);
        if (t->value->shape.dim[first] != its)
            return refuse(s, "the diagonal of %s needs equal extents, and dim %d has %lld", t->value->name, d,
                          (long long)its);
        if (!(s->seen & label_bit(label)) || *extent == 1)
            *extent = its;
        else if (its != 1 && its != *extent)
            return refuse(s, "%s has extent %lld in dim %d, where another operand has %lld", t->value->name,
                          (long long)its, d, (long long)*extent);
        s->seen |= label_bit(label);
    }
    return true;
}

/* Without an arrow: the dims of "...", then the letters that stand once, in the order of the alphabet. */
static void implied_result(sum *s, const int *times)
{
    for (int label = LABELS - 1; label >= LETTERS; label--)
        if (s->seen & label_bit(label))
            s->result.label[s->result.ndim++] = (signed char)label;
    for (int c = 'A'; c <= 'z'; c++) {
        const int label = label_of_letter((char)c);
        if (label >= 0 && times[label] == 1 && s->result.ndim < TRAMA_MAX_NDIM)
            s->result.label[s->result.ndim++] = (signed char)label;
    }
}

static bool read_sum(sum *s, int n, trama_value *const *x)
{
    const char *at = s->text;
    int times[LABELS] = {0}, dots = 0;
    for (s->n = 0; s->n < n; s->n++) {
        term *t = &s->term[s->n];
        t->value = x[s->n];
        if (s->n && *at++ != ',')
            return refuse(s, "it has %d operands, and not %d", s->n, n);
        if (!read_labels(s, &at, -1, t->value->shape.ndim, t) || !note_extents(s, t))
            return false;
        for (int d = 0; d < t->ndim; d++)
            times[(int)t->label[d]]++;
    }
    for (int label = LETTERS; label < LABELS; label++)
        dots += s->seen >> label & 1;
    if (!*at)
        return implied_result(s, times), true;
    if (strncmp(at, "->", 2))
        return refuse(s, "it has more than %d operands, or '-' without '>'", n);
    at += 2;
    if (!read_labels(s, &at, dots, -1, &s->result))
        return false;
    for (int d = 0; d < s->result.ndim; d++)
        if (!(s->seen & label_bit(s->result.label[d])) || dim_with(&s->result, s->result.label[d]) != d)
            return refuse(s, "a letter of the result stands there twice, or in no operand");
    return *at ? refuse(s, "there is something behind the result") : true;
}

/* ---- One tensor ---- */

/* The dims in the order of the labels, which are those of the term. */
static void put_in_order(const sum *s, term *t, const signed char *labels)
{
    int perm[TRAMA_MAX_NDIM];
    bool moved = false;
    for (int d = 0; d < t->ndim; d++) {
        perm[d] = dim_with(t, labels[d]);
        moved |= perm[d] != d;
    }
    t->value = moved && t->value ? trama_transpose_at(s->where, t->value, perm) : t->value;
    memcpy(t->label, labels, (size_t)t->ndim);
}

static void drop_label(term *t, int d)
{
    memmove(&t->label[d], &t->label[d + 1], (size_t)(--t->ndim - d));
}

/* Dims of one label become their diagonal, the last dim. */
static void take_diagonals(const sum *s, term *t)
{
    for (int d = 0; d < t->ndim; d++)
        for (int e = d + 1; e < t->ndim && t->value; e++) {
            if (t->label[e] != t->label[d])
                continue;
            int perm[TRAMA_MAX_NDIM], n = 0;
            const signed char label = t->label[d];
            for (int i = 0; i < t->ndim; i++)
                if (i != d && i != e)
                    perm[n++] = i;
            perm[n++] = d;
            perm[n] = e;
            t->value = trama_diagonal_at(s->where, trama_transpose_at(s->where, t->value, perm), 0);
            drop_label(t, e);
            drop_label(t, d);
            t->label[t->ndim++] = label;
            e = d = -1;
            break;
        }
}

/* Dims that a broadcast would repeat are left out, and those that nobody else has are summed. */
static void reduce(const sum *s, term *t, label_set kept)
{
    int dims[TRAMA_MAX_NDIM], n = 0;
    for (int d = t->ndim - 1; d >= 0 && t->value; d--)
        if (t->value->shape.dim[d] == 1 && s->extent[(int)t->label[d]] != 1) {
            t->value = trama_squeeze_at(s->where, t->value, d);
            drop_label(t, d);
        }
    for (int d = 0; d < t->ndim; d++)
        if (!(kept & label_bit(t->label[d])))
            dims[n++] = d;
    if (n && t->value)
        t->value = trama_sum_at(s->where, t->value, n, dims, false);
    for (int i = n - 1; i >= 0; i--)
        drop_label(t, dims[i]);
}

/* ---- Two tensors ---- */

/* The labels of a term in the order of three groups: in both and kept, then two more. */
static void group(const sum *s, term *t, label_set batch, label_set second, label_set third, int *n_batch,
                  int *n_second)
{
    const label_set sets[] = {batch, second, third};
    signed char order[TRAMA_MAX_NDIM];
    int n = 0, ends[3];
    for (int g = 0; g < 3; g++) {
        for (int label = 0; label < LABELS; label++)
            if (sets[g] & labels_of(t) & label_bit(label))
                order[n++] = (signed char)label;
        ends[g] = n;
    }
    put_in_order(s, t, order);
    *n_batch = ends[0];
    *n_second = ends[1] - ends[0];
}

/* The value with the dims behind the first n_batch as two: n_second of them, and the others. */
static trama_value *as_matrices(const sum *s, const term *t, int n_batch, int n_second)
{
    trama_shape shape = {.ndim = n_batch + 2};
    const trama_shape *x = &t->value->shape;
    for (int d = 0; d < n_batch; d++)
        shape.dim[d] = x->dim[d];
    for (int g = 0; g < 2; g++) {
        const int from = n_batch + (g ? n_second : 0), to = g ? x->ndim : n_batch + n_second;
        shape.dim[n_batch + g] = 1;
        for (int d = from; d < to; d++)
            shape.dim[n_batch + g] = x->dim[d] == TRAMA_ANY || shape.dim[n_batch + g] == TRAMA_ANY
                                         ? TRAMA_ANY
                                         : shape.dim[n_batch + g] * x->dim[d];
    }
    return trama_shape_equal(shape, *x) ? t->value : trama_reshape_at(s->where, t->value, shape);
}

/* x [batch, own of x, contracted], y [batch, contracted, own of y] -> [batch, own of x, own of y] */
static term contract(const sum *s, term x, term y, label_set kept)
{
    const label_set both = labels_of(&x) & labels_of(&y), batch = both & kept, contracted = both & ~kept;
    term z = {0};
    trama_shape shape = {0};
    int n_batch, own_x, n_contracted;
    group(s, &x, batch, ~both, contracted, &n_batch, &own_x);
    group(s, &y, batch, contracted, ~both, &n_batch, &n_contracted);
    const int own_y = y.ndim - n_batch - n_contracted;
    if (!x.value || !y.value || n_batch + 2 > TRAMA_MAX_NDIM || n_batch + own_x + own_y > TRAMA_MAX_NDIM)
        return x.value && y.value ? (void)refuse(s, "a product of two operands has too many dims") : (void)0, z;
    for (int d = 0; d < n_batch + own_x + own_y; d++) {
        const bool of_x = d < n_batch + own_x;
        const int at = of_x ? d : d - own_x + n_contracted;
        z.label[z.ndim++] = of_x ? x.label[at] : y.label[at];
        shape.dim[shape.ndim++] = of_x ? x.value->shape.dim[at] : y.value->shape.dim[at];
    }
    trama_value *left = as_matrices(s, &x, n_batch, own_x), *right = as_matrices(s, &y, n_batch, n_contracted);
    trama_value *product = n_contracted ? trama_matmul_at(s->where, left, right, false, false)
                                        : trama_mul_at(s->where, left, right); /* [.., m, 1] and [.., 1, n] */
    z.value =
        product && !trama_shape_equal(shape, product->shape) ? trama_reshape_at(s->where, product, shape) : product;
    return z;
}

/* ---- All of them ---- */

static void join_all(sum *s)
{
    while (s->n > 1 && s->term[0].value) {
        label_set terms[MOST_OPERANDS];
        for (int i = 0; i < s->n; i++)
            terms[i] = labels_of(&s->term[i]);
        const label_set result = labels_of(&s->result);
        const label_pair p = einsum_next_pair(s->n, terms, result, s->extent);
        s->term[p.a] = contract(s, s->term[p.a], s->term[p.b], einsum_kept(s->n, terms, result, p));
        if (!s->term[p.a].value)
            s->term[0].value = NULL;
        for (int i = p.b; i + 1 < s->n; i++)
            s->term[i] = s->term[i + 1];
        s->n--;
    }
}

/* Labels that no other term has, nor the result, are summed before all products. */
static void reduce_all(sum *s)
{
    for (int i = 0; i < s->n; i++)
        take_diagonals(s, &s->term[i]);
    for (int i = 0; i < s->n; i++) {
        label_set kept = labels_of(&s->result);
        for (int k = 0; k < s->n; k++)
            kept |= k == i ? 0 : labels_of(&s->term[k]);
        reduce(s, &s->term[i], kept);
    }
}

/* The result in its order; a dim that all operands had with extent 1 is there, too. */
static trama_value *in_order(const sum *s)
{
    term t = s->term[0];
    if (!t.value)
        return NULL;
    put_in_order(s, &t, s->result.label);
    return t.value;
}

trama_value *trama_einsum_at(trama_where where, const char *letters, int n, trama_value *const *x)
{
    sum s = {.where = where, .text = letters ? letters : "NULL", .program = n > 0 && x && x[0] ? x[0]->program : NULL};
    if (!letters || n < 1 || n > MOST_OPERANDS || !x) {
        refuse(&s, "it takes a text and 1 to %d operands", MOST_OPERANDS);
        return NULL;
    }
    for (int i = 0; i < n; i++)
        if (!x[i])
            return NULL;
    if (!read_sum(&s, n, x))
        return NULL;
    reduce_all(&s);
    join_all(&s);
    return in_order(&s);
}
