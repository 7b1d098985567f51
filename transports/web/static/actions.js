// What a person may do at a message.

export function attachActions(_element, _message) {}
