/* SPDX-License-Identifier: Apache-2.0 */
/* Tries the meshes of a number of processes, with and without a search, and keeps the shortest run. */
#include <stdio.h>
#include <string.h>

#include "auto_start.h"
#include "cluster.h"
#include "program.h"
#include "sized.h"
#include "trama_auto.h"
#include "trama_complete.h"

/* A later attempt replaces the best one where it takes less than this share of its time. Data parallel plans have the
 * fewest steps, and a small difference between two rehearsals says little. Searched layouts have more steps than those
 * by hand, and their runs take up to 1.2 times as long as predicted (tests/bench/README.md). */
static const double MARGIN = 0.95, MARGIN_OF_SEARCH = 0.9;

enum { NARROWED = 3 }; /* times that a search is repeated within less memory */

#define OPTIONS SIZED(trama_auto_options, nominal)

typedef struct attempt {
    const char *name;
    char axes[32];          /* of the mesh */
    const trama_mesh *mesh; /* NULL: as annotated */
    bool splits_states;     /* by dim 0, as the inputs */
    bool splits_weights;    /* by columns along the last axis; the inputs along the others */
    bool pairs_only;        /* of the weights those whose columns meet the rows of another one */
    bool searched;
    int64_t limit;       /* of a search: bytes that a process may need at a time; 0: any */
    trama_status status; /* E_LAYOUT: the program has no such layouts */
    int64_t bytes, bound, memory;
    int64_t needed; /* bytes at a time, as the limit counts them */
    double seconds;
} attempt;

typedef struct auto_shard {
    trama_target *target;
    trama_program *program;
    const trama_cluster *cluster;
    trama_auto_options o;
    auto_starts starts;
    ARRAY(attempt) attempts;
} auto_shard;

static void start_on(auto_shard *s, const attempt *a)
{
    trama_program *p = s->program;
    p->start.mesh = a->mesh;
    p->start.nominal = s->o.nominal;
    p->start.at.n = 0;
    p->search =
        (search_request){.asked = a->searched, .limit = a->limit, .nearest = a->limit > 0, .where = s->target->where};
    if (!a->mesh)
        return;
    const unsigned all = (1u << a->mesh->ndim) - 1, last = a->splits_weights ? 1u << (a->mesh->ndim - 1) : 0;
    for (int i = 0; i < s->starts.inputs.n; i++)
        *ARRAY_PUSH(&p->start.at) = (start_split){s->starts.inputs.at[i], 0, all & ~last};
    for (int i = 0; i < s->starts.states.n && a->splits_states; i++)
        *ARRAY_PUSH(&p->start.at) = (start_split){s->starts.states.at[i], 0, all};
    for (int i = 0; i < s->starts.weights.n && last; i++) {
        const start_weight *w = &s->starts.weights.at[i];
        if (w->paired || !a->pairs_only)
            *ARRAY_PUSH(&p->start.at) = (start_split){w->split.value, w->split.dim, last};
    }
}

/* ---- Attempts ---- */

static void add_annotated(auto_shard *s, const char *name, bool searched)
{
    *ARRAY_PUSH(&s->attempts) = (attempt){.name = name, .searched = searched};
}

/* On a mesh dp=A, mp=B or dp=A,mp=B; `way` has the name and the splits. */
static void add(auto_shard *s, int dp, int mp, attempt way)
{
    static const char *const names[] = {"dp", "mp"};
    const int shape[] = {dp, mp}, first = dp == 1 && mp > 1, n = dp > 1 && mp > 1 ? 2 : 1;
    trama_mesh *made = mesh_new(n, shape + first, names + first, NULL);
    if (!made)
        return; /* no memory, as the call's end says */
    attempt *a = ARRAY_PUSH(&s->attempts);
    *a = way;
    a->mesh = program_mesh(s->program, made);
    if (n == 2)
        snprintf(a->axes, sizeof a->axes, "dp=%d,mp=%d", dp, mp);
    else
        snprintf(a->axes, sizeof a->axes, "%s=%d", names[first], shape[first]);
    trama_mesh_destroy(&made);
}

/* On each mesh mp=N and dp=A,mp=B. */
static void add_splits(auto_shard *s, attempt way)
{
    for (int mp = 2; mp <= s->o.processes; mp++)
        if (s->o.processes % mp == 0)
            add(s, s->o.processes / mp, mp, way);
}

static bool is_annotated(const trama_program *p)
{
    bool annotated = false;
    for (int i = 0; i < p->values.n; i++)
        annotated |= p->values.at[i]->mesh != NULL;
    for (int i = 0; i < p->nodes.n; i++)
        annotated |= p->nodes.at[i]->fixed != NULL;
    return annotated;
}

/* Whether some weights are one of a pair, and others are not. */
static bool has_odd_weights(const auto_starts *s)
{
    int paired = 0;
    for (int i = 0; i < s->weights.n; i++)
        paired += s->weights.at[i].paired;
    return paired > 0 && paired < s->weights.n;
}

static void list_attempts(auto_shard *s)
{
    const int n = s->o.processes;
    if (is_annotated(s->program)) {
        add_annotated(s, "as annotated", false);
        add_annotated(s, "searched", true);
        return;
    }
    s->starts = auto_starts_of(s->program);
    add(s, n, 1, (attempt){.name = "data parallel"});
    if (has_odd_weights(&s->starts))
        add_splits(s, (attempt){.name = "split pairs", .splits_weights = true, .pairs_only = true});
    if (s->starts.weights.n)
        add_splits(s, (attempt){.name = "split weights", .splits_weights = true});
    if (s->starts.states.n && n > 1)
        add(s, n, 1, (attempt){.name = "split states", .splits_states = true});
    for (int mp = 1; mp <= n; mp++)
        if (n % mp == 0 && (mp < n || n == 1))
            add(s, n / mp, mp, (attempt){.name = "searched", .searched = true});
}

static trama_status count_bytes(const auto_shard *s, attempt *a)
{
    trama_completion *c;
    trama_status status = trama_completion_create(s->program, s->o.nominal, &c);
    if (status)
        return status;
    status = trama_completion_bytes(c, &a->bytes, &a->bound);
    if (!status)
        status = trama_completion_memory_bytes(c, &a->needed);
    trama_completion_destroy(&c);
    return status;
}

static trama_status rehearse(auto_shard *s, attempt *a)
{
    trama_rehearsal *r;
    const trama_rehearsal_options o = {.ranks = s->o.processes < s->cluster->ranks ? s->o.processes : s->cluster->ranks,
                                       .runs = 3,
                                       .any = s->o.any,
                                       .nominal = s->o.nominal};
    trama_rehearsal_report report = {.size = sizeof report};
    start_on(s, a);
    trama_status status = count_bytes(s, a);
    if (!status)
        status = trama_rehearse(s->target, s->cluster, &o, &r);
    a->status = status;
    if (status)
        return status;
    trama_rehearsal_read(r, &report);
    a->seconds = report.step_seconds;
    a->memory = report.memory;
    trama_rehearsal_destroy(&r);
    return TRAMA_OK;
}

static bool has_memory(const auto_shard *s, const attempt *a)
{
    return !s->o.memory_bytes || a->memory <= s->o.memory_bytes;
}

/* Searches again where a rank would have too much, within needed * memory_bytes / memory. The plan may still take more,
 * so it does so up to NARROWED times. */
static trama_status try(auto_shard *s, attempt *a)
{
    trama_status status = rehearse(s, a);
    bool helps = true;
    for (int i = 0; i < NARROWED && helps && !status && a->searched && !has_memory(s, a); i++) {
        attempt within = *a;
        within.limit = max_i64(1, (int64_t)((double)a->needed * (double)s->o.memory_bytes / (double)a->memory));
        status = rehearse(s, &within);
        if (status == TRAMA_E_LAYOUT)
            return TRAMA_OK; /* of the layouts before */
        helps = within.memory < a->memory;
        if (!status && helps)
            *a = within;
    }
    return status;
}

/* Of two runs that take about as long, the one in which a process receives fewer bytes depends less on others. */
static bool replaces(const attempt *a, const attempt *best)
{
    const double margin = a->searched ? MARGIN_OF_SEARCH : MARGIN;
    return a->seconds < margin * best->seconds ||
           (!a->searched && a->seconds <= best->seconds && a->bytes < best->bytes);
}

/* ---- The table ---- */

static void print_row(text *t, const auto_shard *s, const attempt *a, bool chosen)
{
    if (a->status) {
        text_add(t, "%-14s %-16s the program has no such layouts\n", a->name, a->axes);
        return;
    }
    text_add(t, "%-14s %-16s %14lld %14lld %12.6g %14lld%s\n", a->name, a->axes, (long long)a->bytes,
             (long long)a->bound, 1e3 * a->seconds, (long long)a->memory,
             chosen             ? "  chosen"
             : has_memory(s, a) ? ""
                                : "  too much");
}

static trama_status print_table(const auto_shard *s, const attempt *chosen, char **table)
{
    text t = {0};
    text_add(&t, "%-14s %-16s %14s %14s %12s %14s\n", "layouts", "mesh", "bytes", "at least", "ms a run", "memory, B");
    for (int i = 0; i < s->attempts.n; i++)
        print_row(&t, s, &s->attempts.at[i], &s->attempts.at[i] == chosen);
    return text_give(&t, "trama_auto_shard", table);
}

/* ---- The call ---- */

static trama_status read_options(const trama_cluster *cluster, const trama_auto_options *given, trama_auto_options *o)
{
    *o = (trama_auto_options){0};
    trama_status status = given ? sized_read(NOWHERE, "trama_auto_shard", OPTIONS, o, given) : TRAMA_OK;
    if (status)
        return status;
    if (o->processes < 0 || o->processes > 1 << 20 || o->any < 0 || o->any > INT64_C(1) << 48 || o->nominal < 0 ||
        o->nominal > INT64_C(1) << 48 || o->memory_bytes < 0)
        return trama_fail(
            NOWHERE, TRAMA_E_ARGUMENT,
            "trama_auto_shard: processes may be 0 to 2^20, any and nominal 0 to 2^48, memory_bytes 0 and more");
    o->processes = o->processes ? o->processes : cluster->ranks;
    o->any = o->any ? o->any : 1024;
    o->nominal = o->nominal ? o->nominal : o->any;
    return TRAMA_OK;
}

/* The part of a program that a choice changes. */
typedef struct choice_state {
    start_splits start;
    search_request search;
    int n_meshes; /* without that of the start */
} choice_state;

/* Takes an earlier choice away, with its mesh, which would count as processes of the program. */
static choice_state take_choice(trama_program *p)
{
    const choice_state before = {p->start, p->search, p->meshes.n - (p->start.mesh != NULL)};
    int kept = 0;
    for (int i = 0; i < p->meshes.n; i++)
        if (p->meshes.at[i] != p->start.mesh)
            p->meshes.at[kept++] = p->meshes.at[i];
    p->meshes.n = kept;
    p->start = (start_splits){0};
    p->search = (search_request){0};
    return before;
}

/* Destroys the meshes that attempts made, but for the one of the program's start. */
static void drop_meshes(trama_program *p, int n_before)
{
    int kept = n_before;
    for (int i = n_before; i < p->meshes.n; i++)
        if (p->meshes.at[i] == p->start.mesh)
            p->meshes.at[kept++] = p->meshes.at[i];
        else
            trama_mesh_destroy(&p->meshes.at[i]);
    p->meshes.n = kept;
}

static void put_back(trama_program *p, const choice_state *before)
{
    ARRAY_FREE(&p->start.at);
    p->start.mesh = NULL;
    drop_meshes(p, before->n_meshes);
    p->start = before->start;
    p->search = before->search;
    if (before->start.mesh)
        *ARRAY_PUSH(&p->meshes) = (trama_mesh *)before->start.mesh;
}

static void forget(choice_state *before)
{
    trama_mesh *mesh = (trama_mesh *)before->start.mesh;
    trama_mesh_destroy(&mesh);
    ARRAY_FREE(&before->start.at);
}

static trama_status no_memory(const auto_shard *s, const attempt *least)
{
    return trama_fail(s->target->where, TRAMA_E_MEMORY,
                      "trama_auto_shard: a rank may have %lld bytes of buffers (memory_bytes), and takes %lld at least "
                      "(%s%s%s); use more processes or a smaller batch",
                      (long long)s->o.memory_bytes, (long long)least->memory, least->name, *least->axes ? " on " : "",
                      least->axes);
}

/* Tries all; *best stays NULL where none can be planned, or has memory enough. */
static trama_status try_all(auto_shard *s, const attempt **best)
{
    const attempt *least = NULL;
    trama_status status = TRAMA_OK;
    for (int i = 0; i < s->attempts.n; i++) {
        const attempt *a = &s->attempts.at[i];
        status = try(s, &s->attempts.at[i]);
        if (status && status != TRAMA_E_LAYOUT)
            return status;
        if (!status && (!least || a->memory < least->memory))
            least = a;
        if (!status && has_memory(s, a) && (!*best || replaces(a, *best)))
            *best = a;
    }
    if (*best)
        return TRAMA_OK;
    return least ? no_memory(s, least) : status ? status : memory_status(NOWHERE, "trama_auto_shard");
}

static trama_status choose(auto_shard *s, char **table)
{
    const attempt *best = NULL;
    choice_state before = take_choice(s->program);
    list_attempts(s);
    trama_status status = try_all(s, &best);
    if (!status)
        start_on(s, best);
    if (!status && table)
        status = print_table(s, best, table);
    if (status) {
        put_back(s->program, &before);
        return status;
    }
    drop_meshes(s->program, before.n_meshes);
    forget(&before);
    return TRAMA_OK;
}

trama_status trama_auto_shard(trama_target *target, const trama_cluster *cluster, const trama_auto_options *options,
                              char **table)
{
    auto_shard s = {.target = target, .cluster = cluster};
    if (!target || !cluster)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_auto_shard: the %s is NULL", target ? "cluster" : "target");
    s.program = target->program;
    if (s.program->status)
        return trama_fail(NOWHERE, s.program->status, "%s", s.program->error);
    if (s.program->session)
        return trama_fail(
            target->where, TRAMA_E_UNSUPPORTED,
            "trama_auto_shard: eager mode lays out each op as it comes; choose layouts in a compiled program");
    trama_status status = read_options(cluster, options, &s.o);
    const search_request *search = &s.program->search;
    if (!status && search->limit && !search->nearest)
        status = trama_fail(search->where, TRAMA_E_ARGUMENT,
                            "trama_auto_shard: the program has a limit of memory (search_layouts_within or "
                            "search_layouts_in_memory); call search_layouts in its place, and set memory_bytes");
    const int ordered = s.program->order.n;
    if (!status && ordered && s.o.processes > ordered)
        status =
            trama_fail(target->where, TRAMA_E_ARGUMENT,
                       "trama_auto_shard: %d processes, and trama_order has places for %d", s.o.processes, ordered);
    if (!status)
        status = choose(&s, table);
    auto_starts_free(&s.starts);
    ARRAY_FREE(&s.attempts);
    return status;
}
