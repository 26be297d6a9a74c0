// SPDX-License-Identifier: Apache-2.0
// digest_test.c: BLAKE2b-256, held to answers of another implementation
// (Python's hashlib.blake2b with digest_size=32).

#include "base/digest.h"

#include "support/testing.h"

static const struct {
  size_t size;
  const char *text;
} known[] = {
    {0, "0e5751c026e543b2e8ab2eb06099daa1d1e5df47778f7787faab45cdf12fe3a8"},
    {1, "03170a2e7597b7b7e3d84c05391d139a62b157e78786d8c082f29dcf4c111314"},
    {64, "17363253d86da2d13a0f306b36da8157fa4a630e7100e0954859f44a36ae2a41"},
    {127, "4ff62e7c4c43fe101a078479c48836be4907d9d498dcc577ca89d694b2c11f9b"},
    {128, "14696d2a98d9f8a280da8b132b1045b345e1033759c6b02fcc4ee885c8ae7c37"},
    {129, "3934215260b1039be9d9d2b073b059bcd50120c327a22af93eb4d98cf821c14c"},
    {255, "2d106b5efea519e4564d2bd56bcfd2245f30787986ad95a734c248f001aee3c4"},
    {256, "7b4337135e0b112b7ec8528f22dd05af226cca2a358cca731696b6713f9383cb"},
    {257, "36af0bbce3ecc795d8d339ecc7a22badfd16bfa130fc2748c9b2d0f31ce00dd3"},
    {1000, "215bbdb5d56e0153eca48cbf15747f1daf9a359f05042c17c87563010af5b92e"},
};

static void make(unsigned char *bytes, size_t size) {
  for (size_t i = 0; i < size; i++) bytes[i] = (unsigned char)(i * 7 + i / 251);
}

static void digest__is_that_of_another_implementation(void **state) {
  (void)state;
  static unsigned char bytes[1000];
  make(bytes, sizeof bytes);
  for (size_t i = 0; i < COUNT_OF(known); i++) {
    for (size_t part = 1; part <= 200; part += 41) {
      ist__digest digest;
      unsigned char out[IST_DIGEST_SIZE];
      char text[IST_DIGEST_TEXT];
      ist__digest_begin(&digest);
      for (size_t at = 0; at < known[i].size; at += part) {
        size_t left = known[i].size - at;
        ist__digest_add(&digest, bytes + at, left < part ? left : part);
      }
      ist__digest_end(&digest, out);
      ist__digest_text(out, text);
      assert_string_equal(text, known[i].text);
    }
  }
}

static void parts__are_not_taken_for_one_another(void **state) {
  (void)state;
  unsigned char out[2][IST_DIGEST_SIZE];
  for (size_t first = 1; first < 3; first++) {
    ist__digest digest;
    ist__digest_begin(&digest);
    ist__digest_add_part(&digest, "abc", first);
    ist__digest_add_part(&digest, &"abc"[first], 3 - first);
    ist__digest_end(&digest, out[first - 1]);
  }
  assert_memory_not_equal(out[0], out[1], IST_DIGEST_SIZE);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(digest__is_that_of_another_implementation),
      cmocka_unit_test(parts__are_not_taken_for_one_another),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
