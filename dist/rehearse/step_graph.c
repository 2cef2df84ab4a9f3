/* SPDX-License-Identifier: Apache-2.0 */
/* Dependencies as StarPU makes them from the order of submission: a step that reads a tile waits for the step that
 * wrote it last, and one that writes it for all that read it since. */
#include "step_graph.h"

#include <math.h>
#include <string.h>

#include "step_cache.h"
#include "step_cost.h"
#include "step_name.h"

/* ---- Names ---- */

step_names step_names_new(const trama_program *program)
{
    const size_t nodes = (size_t)max_i64(1, program->nodes.n);
    return (step_names){.program = program, .of_node = trama_alloc(nodes * sizeof(int))};
}

void step_names_free(step_names *names)
{
    for (int i = 0; i < names->at.n; i++)
        free(names->at.at[i]);
    ARRAY_FREE(&names->at);
    free(names->of_node);
    *names = (step_names){0};
}

int step_name_number(step_names *names, const char *name)
{
    for (int i = 0; i < names->at.n; i++)
        if (!strcmp(names->at.at[i], name))
            return i;
    *ARRAY_PUSH(&names->at) = trama_text_copy(name);
    return names->at.n - 1;
}

static int name_of(step_names *names, const plan *p, const plan_step *s)
{
    if (s->kind != STEP_COMPUTE)
        return step_name_number(names, s->kind < STEP_SEND ? step_movement_name(s) : "message");
    const trama_node *node = step_main_node(p, names->program, s);
    char name[64];
    if (!names->of_node[node->id]) {
        step_compute_name(node, name, sizeof name);
        names->of_node[node->id] = 1 + step_name_number(names, name);
    }
    return names->of_node[node->id] - 1;
}

/* ---- Dependencies ---- */

typedef struct reader_list {
    int step, next; /* the next reader; -1 */
} reader_list;

typedef struct tile_state {
    int writer, readers; /* since it wrote; -1: none */
    bool closed;         /* written in the second run */
} tile_state;

typedef struct edge {
    int from, to;
} edge;

typedef struct builder {
    const plan *p;
    plan_tile_numbers numbers;
    tile_state *tiles;
    ARRAY(reader_list) readers;
    int *seen; /* [steps] the step to which it has an edge, of the last ones */
    ARRAY(edge) edges;
    int within; /* edges within a run */
} builder;

static void add_edge(builder *b, int from, int to)
{
    if (from < 0 || b->seen[from] == to)
        return;
    b->seen[from] = to;
    *ARRAY_PUSH(&b->edges) = (edge){from, to};
}

static void add_reader(builder *b, tile_state *t, int step)
{
    if (t->readers >= 0 && b->readers.at[t->readers].step == step)
        return;
    *ARRAY_PUSH(&b->readers) = (reader_list){step, t->readers};
    t->readers = b->readers.n - 1;
}

/* For the steps before it; second: those of the run before, as long as no step of its own run has written the tile. */
static void use_tile(builder *b, tile_state *t, int step, bool writes, bool second)
{
    if (second && t->closed)
        return;
    if (!writes || t->readers < 0) {
        if (second || t->writer != step)
            add_edge(b, t->writer, step);
    }
    for (int r = writes ? t->readers : -1; r >= 0; r = b->readers.at[r].next)
        if (second || b->readers.at[r].step != step)
            add_edge(b, b->readers.at[r].step, step);
    if (second)
        t->closed = writes;
    else if (writes)
        *t = (tile_state){step, -1, false};
    else
        add_reader(b, t, step);
}

/* Joins the modes of a step's operands on one tile: reads first. */
static void use_tiles(builder *b, int step, bool second)
{
    const plan_step *s = &b->p->steps.at[step];
    for (int writes = 0; writes < 2; writes++)
        for (int k = 0; k < s->n_operands; k++) {
            const plan_operand *o = plan_step_operand(b->p, s, k);
            if ((o->access != ACCESS_READ) != writes)
                continue;
            const plan_range r = plan_tiles_used(b->p, &b->numbers, o);
            for (int t = r.first; t <= r.last; t++)
                use_tile(b, &b->tiles[t], step, writes, second);
        }
}

static void find_edges(builder *b, bool repeats)
{
    const plan *p = b->p;
    b->numbers = plan_number_tiles(p);
    b->tiles = trama_alloc((size_t)max_i64(1, b->numbers.n) * sizeof *b->tiles);
    b->seen = trama_alloc((size_t)max_i64(1, p->steps.n) * sizeof *b->seen);
    for (int t = 0; t < b->numbers.n; t++)
        b->tiles[t] = (tile_state){-1, -1, false};
    for (int pass = 0; pass < 1 + repeats; pass++) {
        memset(b->seen, -1, (size_t)p->steps.n * sizeof *b->seen);
        for (int i = 0; i < p->steps.n; i++)
            use_tiles(b, i, pass > 0);
        if (!pass)
            b->within = b->edges.n;
    }
}

/* Sorts the edges by their first step: those within a run before those to the next run. */
static void sort_edges(const builder *b, step_graph *g)
{
    g->next = trama_alloc((size_t)max_i64(1, b->edges.n) * sizeof *g->next);
    for (int i = 0; i < b->edges.n; i++) {
        const edge e = b->edges.at[i];
        if (i < b->within) {
            g->steps[e.from].again++;
            g->steps[e.to].waits++;
        } else {
            g->steps[e.to].later++;
        }
        g->steps[e.from + 1].next++;
    }
    for (int i = 0; i < g->n; i++) {
        g->steps[i + 1].next += g->steps[i].next;
        g->steps[i].again += g->steps[i].next;
    }
    int *at = trama_alloc((size_t)max_i64(1, g->n) * sizeof *at);
    for (int i = 0; i < g->n; i++)
        at[i] = g->steps[i].next;
    for (int i = 0; i < b->edges.n; i++)
        g->next[at[b->edges.at[i].from]++] = b->edges.at[i].to;
    free(at);
}

/* ---- Steps ---- */

/* The rank's number of a place. */
static int place_in_rank(const graph_source *source, int place)
{
    return place - machine_first_place(source->machine, source->plan->rank);
}

int graph_worker(const graph_source *source, int place, int lane)
{
    int worker = lane;
    for (int k = place - place_in_rank(source, place); lane >= 0 && k < place; k++)
        worker += source->machine->places[k].workers;
    return worker;
}

static void add_message(const plan *p, int step, graph_messages *messages)
{
    const plan_step *s = &p->steps.at[step];
    const int value = p->shards.at[plan_step_operand(p, s, 0)->region.shard].value;
    *ARRAY_PUSH(messages) = (graph_message){step, s->peer, s->tag, plan_message_bytes(p, s), s->span, value};
}

static int count_tiles(const builder *b, const plan_step *s)
{
    int n = 0;
    for (int i = 0; i < s->n_operands; i++) {
        const plan_range r = plan_tiles_used(b->p, &b->numbers, plan_step_operand(b->p, s, i));
        n += r.last - r.first + 1;
    }
    return n;
}

/* Buffers of the plan, of state and of inputs. */
static void count_memory(const graph_source *source, step_graph *g)
{
    for (int i = 0; i < source->plan->footprint.n; i++) {
        g->buffers += source->plan->footprint.at[i].bytes;
        g->live += source->plan->footprint.at[i].live;
    }
    g->memory = g->buffers;
    for (int i = 0; i < source->leaves->shards.n; i++) {
        const plan_shard *s = &source->leaves->shards.at[i];
        g->memory += plan_shard_bytes(s);
        if (source->names->program->values.at[s->value]->kind == VALUE_INPUT)
            g->inputs += plan_shard_bytes(s);
    }
}

/* How many times as long the runtime takes as with its memory in the cache, which it leaves where a rank has too much
 * data. Ranks with GPUs compute on these alone. */
typedef struct evicted {
    double task, submit, message;
} evicted;

static evicted evict(const graph_source *source, const step_graph *g)
{
    const machine *m = source->machine;
    const cluster_kind *k = source->kind;
    const int rank = source->plan->rank;
    const double data = (double)g->memory / max_i64(1, machine_workers(m, rank));
    const bool on_cores = !m->places[machine_first_place(m, rank)].gpu;
    const double share = on_cores && source->repeats && k->evict > 0 ? fmin(1, data / k->evict) : 0;
    return (evicted){1 + (k->evict_task - 1) * share, 1 + (k->evict_submit - 1) * share,
                     1 + (k->evict_message - 1) * share};
}

static void fill_steps(const graph_source *source, const builder *b, step_graph *g, graph_messages *messages)
{
    const plan *p = source->plan;
    const cluster_kind *k = source->kind;
    const evicted times = evict(source, g);
    step_reuse *reuse = step_reuses(source);
    for (int i = 0; i < p->steps.n; i++) {
        const plan_step *s = &p->steps.at[i];
        graph_step *made = &g->steps[i];
        const bool goes = s->kind == STEP_SEND || s->kind == STEP_RECEIVE;
        made->message = goes ? messages->n : -1;
        made->name = (short)name_of(source->names, p, s);
        made->kind = (unsigned char)s->kind;
        made->priority = s->priority;
        made->place = (short)place_in_rank(source, s->place);
        made->worker = s->kind == STEP_ORDER ? -1 : (short)graph_worker(source, s->place, s->lane);
        made->flops = (float)s->flops;
        made->rendezvous = s->kind == STEP_SEND && s->exchange >= 0 && p->exchanges.at[s->exchange].rendezvous;
        g->submission += k->submit;
        if (goes) {
            add_message(p, i, messages);
            made->seconds = (float)(times.message * k->message);
            g->submission += k->submit_message;
            continue;
        }
        const double bytes = step_bytes(p, s);
        const int tiles = count_tiles(b, s);
        g->submission += k->submit_operand * tiles;
        if (s->kind == STEP_ORDER)
            continue;
        made->seconds = (float)(times.task * (k->task + k->task_operand * tiles) +
                                step_seconds(k, p, source->names->program, s, bytes, reuse[i]));
    }
    g->submission *= times.submit;
    free(reuse);
}

step_graph step_graph_new(const graph_source *source, graph_messages *messages)
{
    step_graph g = {.n = source->plan->steps.n};
    g.steps = trama_alloc(((size_t)g.n + 1) * sizeof *g.steps);
    builder b = {.p = source->plan};
    find_edges(&b, source->repeats);
    sort_edges(&b, &g);
    count_memory(source, &g);
    fill_steps(source, &b, &g, messages);
    free(b.numbers.first);
    free(b.tiles);
    free(b.seen);
    ARRAY_FREE(&b.readers);
    ARRAY_FREE(&b.edges);
    return g;
}

void step_graph_free(step_graph *g)
{
    free(g->steps);
    free(g->next);
    *g = (step_graph){0};
}
