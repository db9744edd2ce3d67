// SPDX-License-Identifier: Apache-2.0
//
// The ids that let a call be repeated without being carried out twice.

#ifndef CUBICML_CLIENT_REQUEST_ID_H_
#define CUBICML_CLIENT_REQUEST_ID_H_

#include <string>

namespace cubicml {

// 128 random bits as hexadecimal text.
std::string NewRequestId();

}  // namespace cubicml

#endif  // CUBICML_CLIENT_REQUEST_ID_H_
