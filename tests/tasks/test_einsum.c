/* SPDX-License-Identifier: Apache-2.0 */
/* Einstein's sums against naive loops over all letters, in several layouts. */
#include "small_matrix.h"

enum { MOST = 8 };

/* The extent of each letter. */
static const int64_t extent_of[26] = {['a' - 'a'] = 3, ['b' - 'a'] = 2, ['c' - 'a'] = 4,
                                      ['d' - 'a'] = 2, ['e' - 'a'] = 3, ['i' - 'a'] = 5,
                                      ['j' - 'a'] = 3, ['k' - 'a'] = 4, ['l' - 'a'] = 2};

static trama_shape shape_of(const char *letters, size_t n)
{
    trama_shape shape = {.ndim = (int)n};
    for (size_t d = 0; d < n; d++)
        shape.dim[d] = extent_of[letters[d] - 'a'];
    return shape;
}

static double element(int operand, int64_t at)
{
    return (double)((operand * 7 + at * 5 + at / 3) % 11 - 4) / 2;
}

/* The row-major place of the letters' indices in a tensor of these letters. */
static int64_t place(const char *letters, size_t n, const int64_t *index)
{
    int64_t at = 0;
    for (size_t d = 0; d < n; d++)
        at = at * extent_of[letters[d] - 'a'] + index[letters[d] - 'a'];
    return at;
}

/* By one loop over all indices of all letters. */
static void naive(const char *sum, double *out)
{
    const char *arrow = strstr(sum, "->"), *result = arrow + 2;
    char letters[27] = "";
    int64_t index[26] = {0}, n = trama_shape_count(shape_of(result, strlen(result)));
    for (const char *c = sum; c < arrow; c++)
        if (*c != ',' && !strchr(letters, *c))
            strncat(letters, c, 1);
    for (int64_t i = 0; i < n; i++)
        out[i] = 0;
    for (bool more = true; more;) {
        double product = 1;
        int operand = 0;
        for (const char *at = sum; at < arrow; operand++) {
            const size_t length = strcspn(at, ",-");
            product *= element(operand, place(at, length, index));
            at += length + (at[length] == ',');
        }
        out[place(result, strlen(result), index)] += product;
        size_t l = 0;
        while (letters[l] && ++index[letters[l] - 'a'] == extent_of[letters[l] - 'a'])
            index[letters[l++] - 'a'] = 0;
        more = letters[l];
    }
}

static trama_value *tensor_of(setting *s, int operand, trama_shape shape)
{
    static const char *const split[] = {"R,R", "S(0),R", "R,S(0)", "S(0),S(1)"};
    double at[512];
    for (int64_t i = 0; i < trama_shape_count(shape); i++)
        at[i] = element(operand, i);
    const char *layout = shape.ndim > 1 ? split[operand % 4] : shape.ndim ? "S(0),R" : "R,R";
    return trama_tensor(s->g.p, TRAMA_F64, shape, at, s->mesh, layout);
}

static int operands_of(setting *s, const char *sum, trama_value **x)
{
    int n = 0;
    for (const char *at = sum; *at && *at != '-'; n++) {
        const size_t length = strcspn(at, ",-");
        x[n] = tensor_of(s, n, shape_of(at, length));
        at += length + (at[length] == ',');
    }
    return n;
}

START_TEST(sums_are_those_of_loops_over_all_letters)
{
    static const char *const texts[] = {
        "ij->ij",
        "ij->ji",
        "ij->i",
        "ij->",
        "i->",
        "ii->i",
        "ii->",
        "iji->j",
        "ij,jk->ik",
        "ij,jk->ki",
        "bij,bjk->bik",
        "ij,kj->ik",
        "ij,ij->ij",
        "ij,ij->",
        "i,j->ij",
        "i,i->",
        "bij,jk->bik",
        "bijk,bkl->bijl",
        "abij,abjk->abik",
        "ij,jk,kl->il",
        "ij,jk,kl,la->ia",
        "i,ij,j->",
        "ia,ib,ic->abc",
        "ij,jk,kl,lb,bc,cd->id",
        "bi,bj,ij->b",
        "aab,bcc->ac",
        "ijk,jil->kl",
        "ij,k->i",
        ",ij->ji",
        "abcde,ec->dab",
    };
    start();
    setting s = setting_of("R,R");
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        const char *result = strstr(texts[t], "->") + 2;
        double wanted[512];
        trama_value *x[MOST];
        const int n = operands_of(&s, texts[t], x);
        naive(texts[t], wanted);
        check(&s, trama_einsum(texts[t], n, x), shape_of(result, strlen(result)), wanted, texts[t]);
    }
    end(&s);
    stop();
}
END_TEST

START_TEST(texts_without_an_arrow_and_with_dots_name_their_results)
{
    static const struct {
        const char *text, *full;
    } pairs[] = {
        {"ij,jk", "ij,jk->ik"},
        {"kj", "kj->jk"},
        {"ii", "ii->"},
        {" i j , j k -> i k ", "ij,jk->ik"},
        {"...ij,...jk->...ik", "abij,abjk->abik"},
        {"...ij,jk->...ik", "abij,jk->abik"},
        {"...i->i...", "abi->iab"},
        {"...,...", "ab,ab->ab"},
        {"...i->...", "bai->ba"},
        {"b...->...b", "bac->acb"},
    };
    start();
    setting s = setting_of("R,R");
    for (size_t t = 0; t < sizeof pairs / sizeof *pairs; t++) {
        const char *result = strstr(pairs[t].full, "->") + 2;
        double wanted[512];
        trama_value *x[MOST];
        const int n = operands_of(&s, pairs[t].full, x);
        naive(pairs[t].full, wanted);
        check(&s, trama_einsum(pairs[t].text, n, x), shape_of(result, strlen(result)), wanted, pairs[t].text);
    }
    end(&s);
    stop();
}
END_TEST

START_TEST(extents_of_1_broadcast)
{
    start();
    setting s = setting_of("R,R");
    double wanted[5 * 4];
    trama_value *x[] = {tensor_of(&s, 0, TRAMA_SHAPE(5, 1)), tensor_of(&s, 1, TRAMA_SHAPE(3, 4))};
    for (int i = 0; i < 5; i++)
        for (int k = 0; k < 4; k++) {
            wanted[4 * i + k] = 0;
            for (int j = 0; j < 3; j++)
                wanted[4 * i + k] += element(0, i) * element(1, 4 * j + k);
        }
    check(&s, trama_einsum("ij,jk->ik", 2, x), TRAMA_SHAPE(5, 4), wanted, "a column and a matrix");
    end(&s);
    stop();
}
END_TEST

START_TEST(gradients_are_einsums_of_the_others)
{
    start();
    setting s = setting_of("R,R");
    trama_value *x[MOST];
    const int n = operands_of(&s, "ij,jk,kl->il", x);
    trama_value *sum = trama_sum(trama_einsum("ij,jk,kl->il", n, x));
    trama_value *others[] = {x[0], x[2]};
    trama_value *d = trama_gradient(sum, x[1]);
    check(&s, trama_sub(d, trama_einsum("ij,kl->jk", 2, others)), TRAMA_SHAPE(3, 4), (const double[12]){0},
          "a gradient");
    end(&s);
    stop();
}
END_TEST

START_TEST(texts_that_do_not_fit_are_refused_with_the_reason)
{
    trama_program *p = trama_program_create();
    trama_value *x[] = {trama_input(p, "x", TRAMA_F32, TRAMA_SHAPE(3, 4)),
                        trama_input(p, "y", TRAMA_F32, TRAMA_SHAPE(5, 4))};
    REFUSED(trama_einsum("ij,jk->ik", 2, x),
            "einsum \"ij,jk->ik\": y has extent 5 in dim 0, where another operand has 4");
    REFUSED(trama_einsum("ijk,jk->ik", 2, x), "ijk has 3 dims, and the operand 2");
    REFUSED(trama_einsum("ij->ij", 2, x), "it has 1 operands, and not 2");
    REFUSED(trama_einsum("ij,kj->ik", 1, x), "it has more than 1 operands");
    REFUSED(trama_einsum("ij,kj->iz", 2, x), "a letter of the result stands there twice, or in no operand");
    REFUSED(trama_einsum("ij,kj->ii", 2, x), "a letter of the result stands there twice, or in no operand");
    REFUSED(trama_einsum("i1,kj->ik", 2, x), "'1' is neither a letter");
    REFUSED(trama_einsum("ij,kj->ik,j", 2, x), "there is something behind the result");
    REFUSED(trama_einsum("ii", 1, x), "the diagonal of x needs equal extents");
    REFUSED(trama_einsum("...i...", 1, x), "'.' is neither a letter");
    trama_program_destroy(&p);
}
END_TEST

TESTS(sums_are_those_of_loops_over_all_letters, texts_without_an_arrow_and_with_dots_name_their_results,
      extents_of_1_broadcast, gradients_are_einsums_of_the_others, texts_that_do_not_fit_are_refused_with_the_reason)
