/* SPDX-License-Identifier: Apache-2.0 */
/* Checks that all ranks have recorded the same program, and finds the first line that differs. Ranks compare hashes of
 * lines by bisection: log2(lines) rounds. */
#include <stdio.h>
#include <string.h>

#include "executable.h"
#include "hash.h"

static const char call[] = "trama_compile";

/* The hash of the first n lines; missing lines of a shorter program count as a line that no program has. */
static uint64_t hash_lines(const program_lines *l, int n)
{
    uint64_t hash = hash_word(HASH_START, (uint64_t)n);
    for (int i = 0; i < n; i++)
        hash = i < l->lines.n ? hash_text(hash, program_line_words(l, i)) : hash_word(hash, HASH_START);
    return hash;
}

/* A line of a rank's program, its source line, and the line of trama_compile. */
typedef struct line_card {
    char words[240], place[220], compiled[200];
} line_card;

static line_card card_of(trama_where where, const program_lines *l, int i)
{
    line_card card;
    memset(&card, 0, sizeof card);
    snprintf(card.compiled, sizeof card.compiled, "%s:%d", where.file ? where.file : "?", where.line);
    snprintf(card.words, sizeof card.words, "%s", i < l->lines.n ? program_line_words(l, i) : "nothing more");
    if (i < l->lines.n && l->lines.at[i].where.file)
        snprintf(card.place, sizeof card.place, " (%s:%d)", l->lines.at[i].where.file, l->lines.at[i].where.line);
    return card;
}

static trama_status report(trama_context *context, const line_card *all, int other)
{
    text t = {0};
    const line_card *a = &all[0], *b = &all[other];
    text_add(&t,
             "%s: the ranks compile different programs. Rank 0 at %s has: %s%s. Rank %d at %s has: %s%s. All ranks "
             "record the same program, with the same numbers; after this, end the context with trama_stop",
             call, a->compiled, a->words, a->place, other, b->compiled, b->words, b->place);
    trama_status status = context_disagree(context, t.at);
    free(t.at);
    return status;
}

/* Bisects: some rank's program differs from rank 0's within the first `most` lines, none within the first `same`. */
static trama_status report_first(trama_where where, trama_context *context, const program_lines *l, int most, int other)
{
    trama_status status = TRAMA_OK;
    for (int same = 0; most - same > 1 && !status;) {
        int middle = same + (most - same) / 2, found;
        status = context_find_other(context, call, hash_lines(l, middle), &found);
        most = found ? middle : most;
        same = found ? same : middle;
        other = found ? found : other;
    }
    line_card mine = card_of(where, l, most - 1), *all = trama_alloc((size_t)context_ranks(context) * sizeof *all);
    if (!status)
        status = context_gather(context, call, &mine, sizeof mine, all);
    if (!status)
        status = report(context, all, other);
    free(all);
    return status;
}

/* Number of lines of the longest program. */
static trama_status count_lines(trama_context *context, int mine, int *most)
{
    int ranks = context_ranks(context), *n = trama_alloc((size_t)ranks * sizeof *n);
    trama_status status = context_gather(context, call, &mine, sizeof mine, n);
    *most = 0;
    for (int r = 0; r < ranks && !status; r++)
        *most = (int)max_i64(*most, n[r]);
    free(n);
    return status;
}

trama_status same_program(trama_where where, trama_context *context, const trama_program *program, trama_status mine)
{
    if (context_ranks(context) == 1)
        return mine;
    program_lines l = {0};
    int other = 0, most = 0;
    if (!mine)
        program_in_lines(program, &l);
    trama_status status = context_find_other(context, call, mine ? 0 : hash_lines(&l, l.lines.n), &other);
    if (!status)
        status = other ? context_agree(context, call, mine) : mine;
    if (!status && other)
        status = count_lines(context, l.lines.n, &most);
    if (!status && other)
        status = report_first(where, context, &l, most, other);
    program_lines_free(&l);
    return status;
}
