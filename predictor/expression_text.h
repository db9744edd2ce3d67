// SPDX-License-Identifier: Apache-2.0
//
// A look at the words of an expression before SQLite sees it, so that what is
// put between parentheses cannot end them, hide behind a comment, or bring
// placeholders of its own.

#ifndef CUBICML_PREDICTOR_EXPRESSION_TEXT_H_
#define CUBICML_PREDICTOR_EXPRESSION_TEXT_H_

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace cubicml {

// The identifiers of `text` in lower case, quoted ones without their quotes,
// each once: whatever may name a variable. INVALID_ARGUMENT when `text` is
// empty, or holds a comment, semicolon, placeholder, subquery, unbalanced
// parentheses, an open quote, a control character, or is not UTF-8.
absl::StatusOr<std::vector<std::string>> ScanExpression(absl::string_view text);

// A name that is compared with a text: mode = 'full', 'full' != mode,
// mode IN ('full', 'none'), vec_count(mode, 'full').
struct TextComparison {
  std::string name;  // in lower case
  std::string text;
  bool within = false;  // with the elements of a vector: vec_count
};

// Those that can be told from the words alone, where nothing but the two is
// compared: none of mode || 'x' = 'full', or of mode = 'FULL' COLLATE NOCASE.
// Errors as ScanExpression.
absl::StatusOr<std::vector<TextComparison>> FindTextComparisons(
    absl::string_view text);

}  // namespace cubicml

#endif  // CUBICML_PREDICTOR_EXPRESSION_TEXT_H_
