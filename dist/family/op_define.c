/* SPDX-License-Identifier: Apache-2.0 */
/* User-defined ops: the checks of a definition, and the descriptor made from it. It never calls a kernel. */
#include "trama_op_define.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "program.h"
#include "rule_text.h"
#include "sized.h"
#include "trama_ops.h"

enum { MOST_NAME = 40, MOST_RULE = 512 };

typedef struct own_op {
    trama_op op; /* the descriptor for other rooms */
    trama_op_definition is;
    trama_where where;
} own_op;

static const own_op *own_of(const trama_op *op)
{
    return (const own_op *)op;
}

/* ---- Arguments and messages of the user's functions ---- */

static trama_op_use use_of(const trama_node *node)
{
    trama_op_use use = {.op = node->op, .where = node->where, .attributes = node->attributes, .n_in = node->op->n_in};
    for (int i = 0; i < use.n_in; i++) {
        use.shape[i] = node->in[i]->shape;
        use.dtype[i] = node->in[i]->dtype;
    }
    return use;
}

trama_status trama_op_refuse(const trama_op_use *use, trama_status status, const char *format, ...)
{
    char message[800] = "it is refused";
    va_list arguments;
    va_start(arguments, format);
    if (format)
        vsnprintf(message, sizeof message, format, arguments);
    va_end(arguments);
    if (!use)
        return trama_fail(NOWHERE, status ? status : TRAMA_E_ARGUMENT, "trama_op_refuse: the use is NULL: %s", message);
    return trama_fail(use->where, status ? status : TRAMA_E_ARGUMENT, "%s: %s", use->op->name, message);
}

static _Thread_local char kernel_message[400];

trama_status trama_kernel_fail(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    if (format)
        vsnprintf(kernel_message, sizeof kernel_message, format, arguments);
    else
        own_op_forget_message();
    va_end(arguments);
    return TRAMA_E_KERNEL;
}

const char *own_op_message(trama_status status)
{
    return *kernel_message ? kernel_message : trama_status_text(status);
}

void own_op_forget_message(void)
{
    *kernel_message = 0;
}

/* ---- Rule and element type ---- */

static trama_status written_rule(const trama_node *node, char *rule)
{
    const own_op *own = own_of(node->op);
    trama_op_use use = use_of(node);
    text why = {0};
    trama_status status = own->is.rule_of(&use, rule, MOST_RULE);
    if (!status && (!memchr(rule, 0, MOST_RULE) || !rule_check(rule, node->op->n_in, node->op->n_out, &why)))
        status = trama_op_refuse(&use, TRAMA_E_ARGUMENT, "the rule that rule_of of the op (%s:%d) wrote: %s",
                                 own->where.file, own->where.line, why.at ? why.at : "it has no end");
    if (!status && node->op->pointwise && !rule_is_pointwise(rule))
        status = trama_op_refuse(&use, TRAMA_E_ARGUMENT, "rule_of (%s:%d) wrote \"%s\", which is not pointwise",
                                 own->where.file, own->where.line, rule);
    if (!status && rule_reaching(rule) & node->op->updates)
        status = trama_op_refuse(&use, TRAMA_E_ARGUMENT,
                                 "rule_of (%s:%d) wrote \"%s\": a state of which neighbours are read cannot be "
                                 "written over",
                                 own->where.file, own->where.line, rule);
    free(why.at);
    return status;
}

static trama_status own_infer(trama_rule *rule, const trama_node *node)
{
    const own_op *own = own_of(node->op);
    char written[MOST_RULE + 1] = {0};
    trama_status status = own->is.rule_of ? written_rule(node, written) : TRAMA_OK;
    if (!status)
        status = rule_parse(rule, own->is.rule_of ? written : own->op.rule, node);
    for (int f = 0; f < rule->n_factors; f++)
        rule->factor[f].reduce = own->is.reduce;
    return status;
}

static trama_status own_dtype(const trama_node *node, trama_dtype *result)
{
    trama_op_use use = use_of(node);
    trama_status status = own_of(node->op)->is.dtype(&use, result);
    for (int i = 0; i < node->op->n_out && !status; i++)
        if ((unsigned)result[i] >= TRAMA_N_DTYPES && (i == 0 || result[i] != DTYPE_UNSAID))
            status = trama_op_refuse(&use, TRAMA_E_DTYPE, "result %d: %d is no element type", i, (int)result[i]);
    return status;
}

/* ---- Gradient ---- */

static void own_gradient(const trama_node *node, trama_value *const *d_out, trama_value **d_in)
{
    trama_op_gradient g = {.where = node->where,
                           .op = node->op,
                           .attributes = node->attributes,
                           .node = node,
                           .of_result = d_out,
                           .of_operand = d_in};
    own_of(node->op)->is.gradient(&g);
}

trama_value *trama_op_operand(const trama_op_gradient *g, int i)
{
    return g && i >= 0 && i < g->op->n_in ? g->node->in[i] : NULL;
}

trama_value *trama_op_result(const trama_op_gradient *g, int i)
{
    return g && i >= 0 && i < g->op->n_out ? g->node->out[i] : NULL;
}

trama_value *trama_op_result_gradient(const trama_op_gradient *g, int i)
{
    trama_value *result = trama_op_result(g, i);
    if (!result || !trama_dtype_is_float(result->dtype))
        return NULL;
    return g->of_result[i] ? g->of_result[i] : trama_scale_at(g->where, result, 0);
}

bool trama_op_wants(const trama_op_gradient *g, int i)
{
    return g && i >= 0 && i < g->op->n_in && node_wants(g->node, i);
}

/* Whether `have` is `want` with extents of 1 repeated and leading dims added. */
static bool repeats(trama_shape have, trama_shape want)
{
    int extra = have.ndim - want.ndim;
    bool fits = extra >= 0;
    for (int d = 0; fits && d < want.ndim; d++)
        fits = want.dim[d] == 1 || want.dim[d] == have.dim[d + extra];
    return fits;
}

void trama_op_set_gradient(const trama_op_gradient *g, int i, trama_value *value)
{
    if (!value || !trama_op_wants(g, i))
        return;
    trama_value *operand = g->node->in[i];
    if (value->program == operand->program && value->dtype == operand->dtype && repeats(value->shape, operand->shape)) {
        g->of_operand[i] = gradient_unbroadcast(value, operand);
        return;
    }
    text t = {0};
    value_text(&t, value);
    text_add(&t, " is no gradient for operand %d, ", i);
    value_text(&t, operand);
    program_fail(operand->program, g->where, TRAMA_E_SHAPE, "gradient of %s: %s", g->op->name, t.at);
    free(t.at);
}

/* ---- Checking a definition ---- */

static bool is_identifier(const char *name, size_t n)
{
    bool right = n > 0 && !isdigit((unsigned char)*name);
    for (size_t i = 0; i < n; i++)
        right &= isalnum((unsigned char)name[i]) || name[i] == '_';
    return right;
}

static bool check_name(const char *name, text *why)
{
    size_t n = name ? strlen(name) : 0;
    if (!is_identifier(name, n) || n > MOST_NAME)
        text_add(why, "the name \"%s\" is no C identifier of 1 to %d characters", name ? name : "", MOST_NAME);
    else if (trama_op_find(name))
        text_add(why, "a built-in op has the name \"%s\"", name);
    return !why->n;
}

static bool check_attributes(const char *names, text *why)
{
    int bars = 0, slots = 0;
    for (const char *at = names; !why->n && *(at += strspn(at, " ")); at += strcspn(at, " ")) {
        size_t n = strcspn(at, " ");
        bool bar = n == 1 && *at == '|';
        bars += bar;
        slots = bar ? 0 : slots + 1;
        bool address = *at == '*';
        if ((!bar && !is_identifier(at + address, n - address)) || bars > 1 || slots > TRAMA_MAX_ATTRIBUTES)
            text_add(why, "the attributes \"%s\" are not up to %d names, \"|\", up to %d names", names,
                     TRAMA_MAX_ATTRIBUTES, TRAMA_MAX_ATTRIBUTES);
    }
    return !why->n;
}

static bool check_counts(const trama_op_definition *d, text *why)
{
    int limit = d->n_out < d->n_in ? d->n_out : d->n_in;
    if (d->n_in < 1 || d->n_out < 1 || d->n_in > TRAMA_MAX_OPERANDS || d->n_out > TRAMA_MAX_OPERANDS ||
        d->n_in + d->n_out > RULE_MAX_TENSORS)
        text_add(why, "it has %d operands and %d results; each may be 1 to %d, and together at most %d", d->n_in,
                 d->n_out, TRAMA_MAX_OPERANDS, RULE_MAX_TENSORS);
    else if (d->updates >> limit)
        text_add(why, "updates is 0x%x, a result is only written over the operand of its number, and there are %d",
                 d->updates, limit);
    return !why->n;
}

static bool check_rule(const trama_op_definition *d, text *why)
{
    if (d->rule && d->rule_of)
        text_add(why, "it has both a rule and rule_of");
    else if (d->rule && !rule_check(d->rule, d->n_in, d->n_out, why))
        return false;
    else if (d->rule && rule_reaching(d->rule) & d->updates)
        text_add(why, "a state of which neighbours are read cannot be written over");
    else if (d->pointwise && !d->rule_of && (!d->rule || !rule_is_pointwise(d->rule)))
        text_add(why, "it is pointwise, but its rule is not: all of it must be \"...\" or scalars, as \"...,->...\"");
    else if ((unsigned)d->reduce > TRAMA_MIN)
        text_add(why, "reduce is %d, which is no trama_reduce", (int)d->reduce);
    else if (d->partial && !d->rule && !d->rule_of)
        text_add(why, "it has partial marks, but no rule that they could be for");
    else if (d->partial)
        rule_check_marks(d->partial, d->n_in, why);
    return !why->n;
}

static bool check_rest(const trama_op_definition *d, text *why)
{
    if (!d->cpu)
        text_add(why, "it has no cpu kernel");
    else if (!(d->flops >= 0) || isinf(d->flops))
        text_add(why, "flops is %g", d->flops);
    return !why->n;
}

/* ---- Life ---- */

/* Copies a text without its spaces, which have no meaning. */
static char *without_spaces(const char *string)
{
    char *copy = trama_text_copy(string), *to = copy;
    for (const char *from = string; from && *from; from++)
        if (*from != ' ')
            *to++ = *from;
    if (copy)
        *to = 0;
    return copy;
}

static void free_own(own_op *own)
{
    free((char *)own->is.name);
    free((char *)own->is.rule);
    free((char *)own->is.partial);
    free((char *)own->is.attributes);
    free(own);
}

static own_op *copy_of(trama_where where, const trama_op_definition *d)
{
    own_op *own = trama_alloc(sizeof *own);
    *own = (own_op){.is = *d, .where = where};
    own->is.name = trama_text_copy(d->name);
    own->is.rule = without_spaces(d->rule);
    own->is.partial = without_spaces(d->partial);
    own->is.attributes = trama_text_copy(d->attributes ? d->attributes : "");
    own->op = (trama_op){.name = own->is.name,
                         .n_in = d->n_in,
                         .n_out = d->n_out,
                         .rule = own->is.rule,
                         .partial = own->is.partial,
                         .infer = d->rule || d->rule_of ? own_infer : NULL,
                         .dtype = d->dtype ? own_dtype : NULL,
                         .gradient = d->gradient ? own_gradient : NULL,
                         .own = d->cpu,
                         .own_cuda = d->cuda,
                         .attributes = own->is.attributes,
                         .flops = d->flops > 0 ? d->flops : 1,
                         .updates = d->updates,
                         .pointwise = d->pointwise};
    return own;
}

trama_status trama_op_define_at(trama_where where, const trama_op_definition *definition, const trama_op **op)
{
    if (!definition || !op)
        return trama_fail(where, TRAMA_E_ARGUMENT, "trama_op_define: the %s is NULL",
                          definition ? "op's address" : "definition");
    trama_op_definition given;
    trama_status status =
        sized_read(where, "trama_op_define", SIZED(trama_op_definition, pointwise), &given, definition);
    if (status)
        return status;
    text why = {0};
    own_op *own = copy_of(where, &given);
    const trama_op_definition *d = &own->is;
    if (check_name(d->name, &why) && check_counts(d, &why) && check_rule(d, &why) &&
        check_attributes(d->attributes, &why) && check_rest(d, &why)) {
        *op = &own->op;
        return TRAMA_OK;
    }
    trama_fail(where, TRAMA_E_ARGUMENT, "trama_op_define: %s: %s", d->name ? d->name : "an op without a name", why.at);
    free(why.at);
    free_own(own);
    return TRAMA_E_ARGUMENT;
}

void trama_op_destroy(const trama_op **op)
{
    if (!op || !*op || !(*op)->own)
        return;
    free_own((own_op *)own_of(*op));
    *op = NULL;
}
