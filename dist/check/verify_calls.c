/* SPDX-License-Identifier: Apache-2.0 */
/* Verifies which calls of a step are done as one, and the values that a step keeps to itself. The needs of each kind
 * follow from descriptors, dtypes, boxes and reads; it takes nothing from planning but the plan. */
#include "verify_calls.h"

#include <stdlib.h>

#include "ops.h"

/* Calls [first, first + n) of a step, which are done as one. */
typedef struct fused_calls {
    const plan *p;
    const trama_program *program;
    const plan_step *step;
    const plan_call *call; /* [step->n_calls] */
    int first, n;
} fused_calls;

static const trama_node *node_of(const fused_calls *f, int i)
{
    return f->program->nodes.at[f->call[i].node];
}

static const plan_operand *operand_of(const fused_calls *f, int operand)
{
    return plan_step_operand(f->p, f->step, operand);
}

static const box *box_of(const fused_calls *f, int operand)
{
    return &operand_of(f, operand)->region.box;
}

static trama_dtype dtype_of(const fused_calls *f, int operand)
{
    return f->p->shards.at[operand_of(f, operand)->region.shard].dtype;
}

/* The shard in whose memory a region lies: that of a view is the shard around it. */
static int memory_of(const plan *p, const plan_region *r)
{
    const plan_shard *s = &p->shards.at[r->shard];
    return s->source == SHARD_VIEW || s->source == SHARD_ALIAS ? s->within : r->shard;
}

static bool share_elements(const plan *p, const plan_region *a, const plan_region *b)
{
    const bool alias = p->shards.at[a->shard].source == SHARD_ALIAS || p->shards.at[b->shard].source == SHARD_ALIAS;
    box common;
    if (memory_of(p, a) != memory_of(p, b))
        return false;
    if (alias && a->shard != b->shard)
        return true; /* their boxes have other dims */
    return box_intersect(&a->box, &b->box, &common) && box_count(&common);
}

static bool overlap(const fused_calls *f, int operand, int other)
{
    return share_elements(f->p, &operand_of(f, operand)->region, &operand_of(f, other)->region);
}

/* ---- A product and the calls behind it ---- */

static int count_reads(const fused_calls *f, int i, int operand)
{
    int n = 0;
    for (int t = 0; t < node_of(f, i)->op->n_in; t++)
        n += f->call[i].in[t] == operand;
    return n;
}

/* The result of call i is not written: call i + 1 reads it once, and no other call of the step does. */
static const char *check_passed_on(const fused_calls *f, int i)
{
    const int made = f->call[i].out[0];
    if (operand_of(f, made)->access != ACCESS_NONE)
        return "a result between its calls is for other steps, too";
    for (int k = 0; k < f->step->n_calls; k++)
        if (count_reads(f, k, made) != (k == i + 1))
            return "a result between its calls is read by another call than the next one";
    return NULL;
}

/* Whether the product at the run's begin reads the memory of an operand. */
static bool product_reads(const fused_calls *f, int operand)
{
    const plan_call *product = &f->call[f->first];
    for (int t = 0; t < node_of(f, f->first)->op->n_in; t++)
        if (product->in[t] >= 0 && overlap(f, product->in[t], operand))
            return true;
    return false;
}

/* A product of which the next call makes the result: that is written while the product reads its operands. */
static const char *check_product(const fused_calls *f)
{
    const int made = f->call[f->first].out[0], result = f->call[f->first + 1].out[0];
    if (!node_of(f, f->first)->op->product)
        return "its first call is no product";
    const char *problem = check_passed_on(f, f->first);
    if (problem)
        return problem;
    if (dtype_of(f, made) != dtype_of(f, result))
        return "its results are of different dtypes";
    if (box_count(box_of(f, made)) != box_count(box_of(f, result)))
        return "its results are of different sizes";
    return product_reads(f, result) ? "the product reads the memory that it is computed into" : NULL;
}

/* The BLAS gets the factor before it starts, from the host; told 0 it does not multiply, and NaN would be lost. */
static bool is_factor_known(const fused_calls *f, const trama_node *update)
{
    return update->op->addition == TRAMA_ADDITION_ATTRIBUTE ? update->attributes->real[0] != 0
                                                            : !plan_on_gpu(f->p, f->step->place);
}

static const char *check_addition(const fused_calls *f)
{
    const int i = f->first;
    if (f->n != 2)
        return "an addition has two calls";
    const trama_node *update = node_of(f, i + 1);
    const plan_call *into = &f->call[i + 1];
    if (update->op->addition == TRAMA_ADDITION_NONE || into->in[1] != f->call[i].out[0])
        return "its second call does not add the product to a state";
    if (!(update->op->updates & 1) || into->in[0] != into->out[0] ||
        operand_of(f, into->out[0])->access != ACCESS_UPDATE)
        return "the product is added to another buffer than the state that the next call updates";
    if (!trama_dtype_is_float(dtype_of(f, into->out[0])))
        return "its dtype is no float";
    return is_factor_known(f, update) ? check_product(f) : "its factor is 0 or not known to the host";
}

/* ---- Calls that keep the order of elements ---- */

/* An element of `written` must not be another element of `used`: the calls do one element, or chunk, after the other.
 */
static const char *check_same_elements(const fused_calls *f, int written, int used)
{
    if (written == used || used < 0 || !overlap(f, written, used))
        return NULL;
    return box_equal(box_of(f, written), box_of(f, used)) ? NULL
                                                          : "a call writes elements that another reads elsewhere";
}

static const char *check_writes(const fused_calls *f, int i, int written)
{
    const char *problem = NULL;
    for (int k = f->first; k < f->first + f->n && !problem; k++) {
        const trama_op *op = node_of(f, k)->op;
        for (int t = 0; t < op->n_in && !problem; t++)
            problem = check_same_elements(f, written, f->call[k].in[t]);
        for (int o = 0; o < op->n_out && !problem; o++)
            problem = check_same_elements(f, written, f->call[k].out[o]);
    }
    for (int t = f->step->n_operands - f->step->n_terms; t < f->step->n_operands && i == 0 && !problem; t++)
        problem = check_same_elements(f, written, t);
    return problem;
}

/* Results of n elements each; `broadcasts`: operands may be smaller, else they have n elements or one. */
static const char *check_counts(const fused_calls *f, int i, int64_t n, bool broadcasts)
{
    const trama_op *op = node_of(f, i)->op;
    if (!op->pointwise)
        return "a call is not pointwise";
    for (int o = 0; o < op->n_out; o++)
        if (box_count(box_of(f, f->call[i].out[o])) != n)
            return "its results are of different sizes";
    for (int t = 0; t < op->n_in && !broadcasts; t++) {
        const int64_t count = f->call[i].in[t] < 0 ? 0 : box_count(box_of(f, f->call[i].in[t]));
        if (count != n && count != 1)
            return "an operand has another order of elements than the result";
    }
    return NULL;
}

/* The results of all calls have n elements, and no call writes what another reads elsewhere. */
static const char *check_each(const fused_calls *f, int64_t n, bool broadcasts)
{
    const char *problem = NULL;
    for (int i = f->first; i < f->first + f->n && !problem; i++) {
        problem = check_counts(f, i, n, broadcasts);
        for (int o = 0; o < node_of(f, i)->op->n_out && !problem; o++)
            problem = check_writes(f, f->first, f->call[i].out[o]);
    }
    return problem;
}

static const char *check_elements(const fused_calls *f, bool broadcasts)
{
    const int64_t n = box_count(box_of(f, f->call[f->first + f->n - 1].out[0]));
    const bool sums = f->first == 0 && f->step->n_terms;
    if (f->n + sums < 2)
        return "it is one call alone";
    if (sums && box_count(box_of(f, f->step->sum)) != n)
        return "the sum before it has another number of elements";
    return check_each(f, n, broadcasts);
}

static const char *check_chunks(const fused_calls *f)
{
    return f->n < f->step->n_calls ? "it is not all calls of its step" : check_elements(f, false);
}

static bool is_made(const fused_calls *f, int from, int before, int operand)
{
    for (int i = from; i < before; i++)
        for (int o = 0; o < node_of(f, i)->op->n_out; o++)
            if (f->call[i].out[o] == operand)
                return true;
    return from == 0 && f->step->n_terms && f->step->sum == operand;
}

/* A cast between float dtypes, of which one is the chain's. A value of another dtype comes from memory. */
static const char *check_cast(const fused_calls *f, int i, trama_dtype dtype)
{
    const trama_dtype from = dtype_of(f, f->call[i].in[0]), to = dtype_of(f, f->call[i].out[0]);
    if (!trama_dtype_is_float(from) || !trama_dtype_is_float(to) || (from != dtype && to != dtype))
        return "a cast is not to or from the float type of its calls";
    return from != dtype && is_made(f, f->first, i, f->call[i].in[0]) ? "a cast reads what one of its calls has cast"
                                                                      : NULL;
}

/* Scalars of updates may be of any dtype. */
static const char *check_chained(const fused_calls *f, int i, trama_dtype dtype)
{
    const trama_op *op = node_of(f, i)->op;
    bool same = trama_dtype_is_float(dtype);
    if (op->own)
        return "a call is of a user's own op";
    if (op->updates && i < f->first + f->n - 1)
        return "an update is not its last call";
    if (op == &trama_op_cast && f->call[i].in[0] >= 0)
        return check_cast(f, i, dtype);
    for (int t = 0; t < op->n_in; t++)
        same = same && (op->updates || f->call[i].in[t] < 0 || dtype_of(f, f->call[i].in[t]) == dtype);
    for (int o = 0; o < op->n_out; o++)
        same = same && dtype_of(f, f->call[i].out[o]) == dtype;
    return same ? NULL : "its calls are not of one float type";
}

static const char *check_chain(const fused_calls *f)
{
    const trama_dtype dtype = dtype_of(f, f->call[f->first].out[0]);
    const char *problem = NULL;
    if (!plan_on_gpu(f->p, f->step->place))
        return "only GPUs run chains";
    if (f->n > FUSED_MOST_CHAINED)
        return "a chain has 16 calls at most";
    if (f->first == 0 && f->step->n_terms && dtype_of(f, f->step->sum) != dtype)
        return "the sum before it is of another type";
    for (int i = f->first; i < f->first + f->n && !problem; i++)
        problem = check_chained(f, i, dtype);
    return problem ? problem : check_elements(f, true);
}

/* ---- A product and a chain ---- */

/* The results of the chain are written while the product reads its operands. */
static const char *check_epilogue(const fused_calls *f)
{
    const int made = f->call[f->first].out[0];
    const fused_calls chain = {f->p, f->program, f->step, f->call, f->first + 1, f->n - 1};
    const char *problem = NULL;
    if (!plan_on_gpu(f->p, f->step->place))
        return "only GPUs compute epilogues";
    if (f->n < 2 || f->n > 1 + FUSED_MOST_CHAINED)
        return "a product has 1 to 16 epilogues";
    if (!node_of(f, f->first)->op->product)
        return "its first call is no product";
    if (operand_of(f, made)->access != ACCESS_NONE)
        return "a result between its calls is for other steps, too";
    for (int k = 0; k < f->step->n_calls; k++)
        if (count_reads(f, k, made) && (k < chain.first || k >= chain.first + chain.n))
            return "a result between its calls is read by another call";
    if (!count_reads(f, chain.first, made))
        return "its second call does not read the product";
    for (int i = chain.first; i < chain.first + chain.n && !problem; i++) {
        if (f->call[i].fused.n > chain.first + chain.n - i)
            return "a run within it goes on behind it";
        problem = node_of(f, i)->op->updates ? "an epilogue updates a state" : check_chained(f, i, dtype_of(f, made));
        if (!problem && product_reads(f, f->call[i].out[0]))
            problem = "the product reads memory that an epilogue writes";
    }
    return problem ? problem : check_each(&chain, box_count(box_of(f, made)), true);
}

/* ---- Values that a step keeps to itself ---- */

/* All uses of each shard, as lists. */
typedef struct uses {
    int *first, *next, *step; /* [shards], [operands], [operands]: operands; -1: none */
} uses;

static uses uses_of(const plan *p)
{
    const size_t n = (size_t)p->operands.n;
    uses u = {trama_alloc((size_t)p->shards.n * sizeof(int)), trama_alloc(n * sizeof(int)),
              trama_alloc(n * sizeof(int))};
    for (int i = 0; i < p->shards.n; i++)
        u.first[i] = -1;
    for (int i = 0; i < p->steps.n; i++)
        for (int k = 0; k < p->steps.at[i].n_operands; k++) {
            const int at = p->steps.at[i].operand + k, memory = memory_of(p, &p->operands.at[at].region);
            u.step[at] = i;
            u.next[at] = u.first[memory];
            u.first[memory] = at;
        }
    return u;
}

static void uses_free(uses *u)
{
    free(u->first);
    free(u->next);
    free(u->step);
}

/* Operands without access: a call or the sum makes each before other calls read it, and no other step uses it. */
static const char *check_kept(const fused_calls *f, const uses *u)
{
    const plan_step *s = f->step;
    for (int i = 0; i < s->n_calls; i++)
        for (int t = 0; t < node_of(f, i)->op->n_in; t++) {
            const int in = f->call[i].in[t];
            if (in >= 0 && operand_of(f, in)->access == ACCESS_NONE && !is_made(f, 0, i, in))
                return "a call reads a value of the step that no earlier call has made";
        }
    for (int k = 0; k < s->n_operands; k++) {
        const plan_region *r = &operand_of(f, k)->region;
        if (operand_of(f, k)->access != ACCESS_NONE)
            continue;
        for (int at = u->first[memory_of(f->p, r)]; at >= 0; at = u->next[at])
            if (&f->p->steps.at[u->step[at]] != s && share_elements(f->p, r, &f->p->operands.at[at].region))
                return "another step uses a value that this step keeps to itself";
    }
    return NULL;
}

/* ---- All steps ---- */

static const char *check_run(const fused_calls *f)
{
    static const char *(*const of_kind[])(const fused_calls *) = {
        [FUSED_ADDITION] = check_addition,
        [FUSED_EPILOGUE] = check_epilogue,
        [FUSED_CHUNKS] = check_chunks,
        [FUSED_CHAIN] = check_chain,
    };
    const unsigned kind = f->call[f->first].fused.kind;
    if (kind == FUSED_NOT)
        return f->n ? "a call that goes alone counts others" : NULL;
    if (kind >= sizeof of_kind / sizeof *of_kind)
        return "its kind is unknown";
    if (f->n < 1 || f->n > f->step->n_calls - f->first)
        return "it goes beyond the calls of its step";
    return of_kind[kind](f);
}

static trama_status wrong(const fused_calls *f, const char *problem)
{
    static const char *const names[] = {[FUSED_NOT] = "single call",
                                        [FUSED_ADDITION] = "addition",
                                        [FUSED_EPILOGUE] = "product with epilogues",
                                        [FUSED_CHUNKS] = "run in chunks",
                                        [FUSED_CHAIN] = "chain"};
    const plan_call *c = &f->call[f->first];
    const unsigned kind = c->fused.kind;
    const char *name = kind < sizeof names / sizeof *names ? names[kind] : "run";
    return trama_fail(node_of(f, f->first)->where, TRAMA_E_SYSTEM,
                      "verify: rank %d, place %d: the %s of %d calls from %s on, number %d of %d in their step: %s",
                      f->p->rank, f->step->place, name, c->fused.n, node_of(f, f->first)->op->name, f->first,
                      f->step->n_calls, problem);
}

static trama_status verify_step(const plan *p, const trama_program *program, const plan_step *s, const uses *u)
{
    fused_calls f = {p, program, s, &p->calls.at[s->call], 0, 0};
    const char *problem = check_kept(&f, u);
    for (int i = 0; i < s->n_calls && !problem; i++) {
        f.first = i;
        f.n = f.call[i].fused.n;
        problem = check_run(&f);
    }
    return problem ? wrong(&f, problem) : TRAMA_OK;
}

trama_status calls_verify(const plan *p, const trama_program *program)
{
    trama_status status = TRAMA_OK;
    uses u = uses_of(p);
    for (int i = 0; i < p->steps.n && !status; i++)
        if (p->steps.at[i].kind == STEP_COMPUTE)
            status = verify_step(p, program, &p->steps.at[i], &u);
    uses_free(&u);
    return status;
}
