/* SPDX-License-Identifier: Apache-2.0 */
/* The text of a described machine: statements, quantities with units, errors that name the line. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "cluster.h"

enum { MOST_WORDS = 8, MOST_QUANTITIES = 3, MOST_NODES = 1 << 20, MOST_PER_NODE = 1 << 16, MOST_SWITCHES = 1 << 16 };

typedef struct reader {
    trama_cluster *c;
    int line;
    char *word[MOST_WORDS + 1];
    int n;
    trama_status status;
} reader;

static bool refuse(reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static bool refuse(reader *r, const char *format, ...)
{
    char why[200];
    va_list list;
    va_start(list, format);
    vsnprintf(why, sizeof why, format, list);
    va_end(list);
    r->status = trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_cluster_create: line %d: %s", r->line, why);
    return false;
}

/* ---- Words ---- */

static bool read_number(reader *r, int at, const char *unit, double least, double *value)
{
    static const char prefixes[] = "num kMGT";
    const char *word = r->word[at];
    char *end;
    *value = strtod(word, &end);
    const char *prefix = *end && *end != ' ' ? strchr(prefixes, *end) : NULL;
    if (prefix && (strcmp(end, unit) || !*unit)) {
        *value *= pow(1000, (double)(prefix - prefixes - 3));
        end++;
    }
    if (end == word || (*end && strcmp(end, unit)))
        return refuse(r, "'%.40s' is no number%s%s; write it as 25%s%s", word, *unit ? " of " : "", unit,
                      *unit ? "G" : "", unit);
    if (!(*value >= least) || *value > 1e30)
        return refuse(r, "'%.40s' must be %s", word, least > 0 ? "above 0" : "0 or more, and finite");
    return true;
}

static bool read_count(reader *r, int at, int least, int most, int *value)
{
    char *end;
    const long long n = strtoll(r->word[at], &end, 10);
    if (end == r->word[at] || *end || n < least || n > most)
        return refuse(r, "'%.40s' must be a whole number from %d to %d", r->word[at], least, most);
    *value = (int)n;
    return true;
}

static bool read_name(reader *r, int at, char *name)
{
    if (strlen(r->word[at]) >= CLUSTER_NAME)
        return refuse(r, "the name '%.40s' has %d letters or more", r->word[at], CLUSTER_NAME);
    strcpy(name, r->word[at]);
    return true;
}

static bool has_words(reader *r, int least, int most, const char *form)
{
    return (r->n >= least && r->n <= most) || refuse(r, "the statement has %d words; its form is: %s", r->n, form);
}

static cluster_kind *kind_now(reader *r)
{
    if (!r->c->kinds.n)
        refuse(r, "'%.40s' describes a kind of node; begin one before it: kind NAME", r->word[0]);
    cluster_kind *last = r->c->kinds.n ? &r->c->kinds.at[r->c->kinds.n - 1] : NULL;
    if (last && last->used)
        refuse(r, "'%.40s' comes behind nodes of kind '%.40s'; describe a kind before its nodes", r->word[0],
               last->name);
    return r->status ? NULL : last;
}

/* ---- Statements ---- */

static bool read_kind(reader *r)
{
    if (!has_words(r, 2, 2, "kind NAME"))
        return false;
    for (int i = 0; i < r->c->kinds.n; i++)
        if (!strcmp(r->c->kinds.at[i].name, r->word[1]))
            return refuse(r, "there is a kind '%.40s' already", r->word[1]);
    cluster_kind made = {.ranks = 1,
                         .task = 1e-6,
                         .message = 1e-6,
                         .feed = 1e10,
                         .evict_task = 1,
                         .evict_submit = 1,
                         .evict_message = 1,
                         .pcie = 16e9,
                         .local = 10e9,
                         .local_latency = 1e-6,
                         .eager = 1e6,
                         .cache_rate = 100e9,
                         .far_rate = 10e9};
    if (!read_name(r, 1, made.name))
        return false;
    *ARRAY_PUSH(&r->c->kinds) = made;
    return true;
}

/* The element type, or RATE_MEMORY, in word `at`. */
static bool read_what(reader *r, int at, int *what)
{
    *what = RATE_MEMORY;
    if (!strcmp(r->word[at], "memory"))
        return true;
    for (*what = 0; *what < TRAMA_N_DTYPES; ++*what)
        if (!strcmp(r->word[at], trama_dtype_name((trama_dtype)*what)))
            return true;
    return refuse(r, "'%.40s' is neither an element type, as f32, nor the word memory", r->word[at]);
}

static bool read_rate(reader *r, rate_of of)
{
    const int at = of == RATE_OF_OP ? 2 : 1;
    cluster_kind *k = kind_now(r);
    cluster_rate made = {.of = of};
    if (!k || !has_words(r, at + 2, at + 3, at == 2 ? "op NAME TYPE RATE [WORK]" : "core TYPE RATE [WORK]") ||
        (at == 2 && !read_name(r, 1, made.op)) || !read_what(r, at, &made.what) ||
        !read_number(r, at + 1, made.what == RATE_MEMORY ? "B/s" : "flop/s", 1, &made.rate) ||
        (r->n == at + 3 && !read_number(r, at + 2, made.what == RATE_MEMORY ? "B" : "flop", 1, &made.work)))
        return false;
    *ARRAY_PUSH(&k->rates) = made;
    return true;
}

static bool read_fact(reader *r)
{
    cluster_kind *k = kind_now(r);
    if (!k)
        return false;
    const struct {
        const char *word;
        double least; /* of the first quantity */
        struct {
            const char *unit;
            double *value;
        } quantity[MOST_QUANTITIES];
    } facts[] = {
        {"task", 0, {{"s", &k->task}, {"s", &k->task_operand}}},
        {"submit", 0, {{"s", &k->submit}, {"s", &k->submit_operand}, {"s", &k->submit_run}}},
        {"read", 0, {{"s", &k->read}}},
        {"feed", 1, {{"B/s", &k->feed}}},
        {"message", 0, {{"s", &k->message}, {"s", &k->submit_message}, {"", &k->evict_message}}},
        {"cache", 0, {{"B", &k->cache}, {"B/s", &k->cache_rate}}},
        {"far", 0, {{"B", &k->far}, {"B/s", &k->far_rate}, {"B/s", &k->far_writes}}},
        {"evict", 0, {{"B", &k->evict}, {"", &k->evict_task}, {"", &k->evict_submit}}},
        {"local", 1, {{"B/s", &k->local}, {"s", &k->local_latency}}},
        {"pcie", 1, {{"B/s", &k->pcie}}},
        {"eager", 0, {{"B", &k->eager}}},
    };
    for (size_t i = 0; i < sizeof facts / sizeof *facts; i++) {
        int most = 0, at = 0;
        while (most < MOST_QUANTITIES && facts[i].quantity[most].value)
            most++;
        if (strcmp(r->word[0], facts[i].word))
            continue;
        if (!has_words(
                r, 2, 1 + most,
                "a word and one quantity; two of task, cache and local; three of submit, message, far and evict"))
            return false;
        while (at < r->n - 1 &&
               read_number(r, 1 + at, facts[i].quantity[at].unit, at ? 0 : facts[i].least, facts[i].quantity[at].value))
            at++;
        return at == r->n - 1;
    }
    int *const counts[] = {&k->cores, &k->ranks, &k->gpus};
    static const char *const words[] = {"cores", "ranks", "gpus"};
    for (int i = 0; i < 3; i++)
        if (!strcmp(r->word[0], words[i]))
            return has_words(r, 2, 2, "cores N, ranks N, gpus N") && read_count(r, 1, i < 2, MOST_PER_NODE, counts[i]);
    return refuse(r, "there is no statement '%.40s'; see trama_rehearsal.h", r->word[0]);
}

/* "in SWITCH BANDWIDTH TIME" from word `at` on, or nothing. */
static bool read_link(reader *r, int at, int *parent, double *bandwidth, double *latency)
{
    *parent = -1;
    if (r->n == at)
        return true;
    if (r->n != at + 4 || strcmp(r->word[at], "in"))
        return refuse(r, "behind '%.40s' comes: in SWITCH BANDWIDTH TIME", r->word[at - 1]);
    for (int i = 0; i < r->c->switches.n; i++)
        if (!strcmp(r->c->switches.at[i].name, r->word[at + 1]))
            *parent = i;
    if (*parent < 0)
        return refuse(r, "there is no switch '%.40s' before this line", r->word[at + 1]);
    return read_number(r, at + 2, "B/s", 1, bandwidth) && read_number(r, at + 3, "s", 0, latency);
}

static bool read_switch(reader *r)
{
    cluster_switch made = {.parent = -1};
    if (!has_words(r, 2, 6, "switch NAME [in SWITCH BANDWIDTH TIME]") || !read_name(r, 1, made.name))
        return false;
    for (int i = 0; i < r->c->switches.n; i++)
        if (!strcmp(r->c->switches.at[i].name, made.name))
            return refuse(r, "there is a switch '%.40s' already", made.name);
    if (r->c->switches.n == MOST_SWITCHES)
        return refuse(r, "there are more than %d switches", MOST_SWITCHES);
    if (!read_link(r, 2, &made.parent, &made.bandwidth, &made.latency))
        return false;
    *ARRAY_PUSH(&r->c->switches) = made;
    return true;
}

static bool read_nodes(reader *r)
{
    cluster_node made = {.kind = -1};
    int n = 0;
    if (!has_words(r, 3, 7, "nodes N KIND [in SWITCH BANDWIDTH TIME]") || !read_count(r, 1, 1, MOST_NODES, &n))
        return false;
    for (int i = 0; i < r->c->kinds.n; i++)
        if (!strcmp(r->c->kinds.at[i].name, r->word[2]))
            made.kind = i;
    if (made.kind < 0)
        return refuse(r, "there is no kind '%.40s' before this line", r->word[2]);
    if (!read_link(r, 3, &made.parent, &made.bandwidth, &made.latency))
        return false;
    const int ranks = r->c->kinds.at[made.kind].ranks;
    r->c->kinds.at[made.kind].used = true;
    if (r->c->nodes.n + n > MOST_NODES || (int64_t)n * ranks + r->c->ranks > MOST_NODES)
        return refuse(r, "there are more than %d nodes or ranks", MOST_NODES);
    for (int i = 0; i < n; i++) {
        made.first_rank = r->c->ranks;
        r->c->ranks += ranks;
        *ARRAY_PUSH(&r->c->nodes) = made;
    }
    return true;
}

static bool read_statement(reader *r)
{
    static const struct {
        const char *word;
        rate_of of;
    } rates[] = {{"core", RATE_OF_CORE}, {"gpu", RATE_OF_GPU}, {"op", RATE_OF_OP}};
    for (int i = 0; i < 3; i++)
        if (!strcmp(r->word[0], rates[i].word))
            return read_rate(r, rates[i].of);
    return !strcmp(r->word[0], "kind")     ? read_kind(r)
           : !strcmp(r->word[0], "switch") ? read_switch(r)
           : !strcmp(r->word[0], "nodes")  ? read_nodes(r)
                                           : read_fact(r);
}

/* ---- The whole text ---- */

/* Divides a line, which it changes, into words. */
static bool divide(reader *r, char *line)
{
    line[strcspn(line, "#")] = 0;
    r->n = 0;
    for (char *at = line; *(at += strspn(at, " \t\r"));) {
        if (r->n == MOST_WORDS)
            return refuse(r, "a statement has at most %d words", MOST_WORDS);
        r->word[r->n++] = at;
        at += strcspn(at, " \t\r");
        if (*at)
            *at++ = 0;
    }
    return true;
}

/* Nodes of one network hang in one tree; a cluster without switches has one node. */
static void check_whole(reader *r)
{
    int roots = 0, loose = 0;
    for (int i = 0; i < r->c->switches.n; i++)
        roots += r->c->switches.at[i].parent < 0;
    for (int i = 0; i < r->c->nodes.n; i++)
        loose += r->c->nodes.at[i].parent < 0;
    if (!r->c->nodes.n)
        refuse(r, "the machine ends without a node; add: nodes N KIND");
    else if (loose && r->c->nodes.n > 1)
        refuse(r, "the machine has %d nodes, and %d of them in no switch; add to their lines: in SWITCH BANDWIDTH TIME",
               r->c->nodes.n, loose);
    else if (roots > 1)
        refuse(r, "the machine has %d switches that are in none, so parts of it cannot reach each other", roots);
    for (int i = 0; i < r->c->nodes.n && !r->status; i++) {
        cluster_kind *k = &r->c->kinds.at[r->c->nodes.at[i].kind];
        if (!k->cores && k->ranks > 1)
            refuse(r, "kind '%.40s' has %d ranks, but no cores; add: cores %d", k->name, k->ranks, k->ranks);
        k->cores = k->cores ? k->cores : 1;
    }
}

trama_status trama_cluster_create(const char *source, trama_cluster **cluster)
{
    if (!source || !cluster)
        return trama_fail(NOWHERE, TRAMA_E_ARGUMENT, "trama_cluster_create: the %s is NULL",
                          source ? "cluster's address" : "text");
    reader r = {.c = trama_alloc(sizeof *r.c), .line = 0};
    char *own = trama_text_copy(source);
    for (char *line = own, *next; line && !r.status; line = next) {
        next = strchr(line, '\n');
        if (next)
            *next++ = 0;
        r.line++;
        if (divide(&r, line) && r.n)
            read_statement(&r);
    }
    if (!r.status)
        check_whole(&r);
    free(own);
    if (!r.status)
        r.status = memory_status(NOWHERE, "trama_cluster_create");
    if (r.status)
        trama_cluster_destroy(&r.c);
    else
        *cluster = r.c;
    return r.status;
}
