"""How pages are looked at: at the width of a phone and of a desk, and how well their words stand out."""

from typing import Any, Final

PHONE: Final[dict[str, Any]] = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}
DESKTOP: Final[dict[str, Any]] = {"viewport": {"width": 1280, "height": 800}}

# WCAG 2.2, 1.4.3: what every visible text has as its own colour against what lies behind it.
CONTRASTS: Final = """() => {
    const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
    const light = colour => {
        const linear = c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4;
        const [r, g, b] = numbers(colour).map(c => linear(c / 255));
        return 0.2126 * r + 0.7152 * g + 0.0722 * b;
    };
    const behind = each => {
        while (each && (numbers(getComputedStyle(each).backgroundColor)[3] ?? 1) === 0) each = each.parentElement;
        return getComputedStyle(each ?? document.body).backgroundColor;
    };
    const found = {};
    for (const each of document.querySelectorAll("body *")) {
        const text = [...each.childNodes].filter(node => node.nodeType === 3).map(node => node.data.trim()).join("");
        if (!text || !each.checkVisibility() || each.closest(".unseen, :disabled")) continue;
        const [one, two] = [light(getComputedStyle(each).color), light(behind(each))];
        found[text.slice(0, 30)] = (Math.max(one, two) + 0.05) / (Math.min(one, two) + 0.05);
    }
    return found;
}"""

# What moved without anybody's doing, from then on: the sum of the browser's own measure, and that once all is at rest.
WATCH_SHIFTS: Final = """
    window.shift = 0;
    const watch = list => list.getEntries().forEach(each => window.shift += each.value);
    new PerformanceObserver(watch).observe({type: "layout-shift", buffered: true});
"""
AT_REST: Final = """async () => {
    await Promise.all([...document.images].map(each => each.decode().catch(() => null)));
    for (let frame = 0; frame < 5; frame++) await new Promise(requestAnimationFrame);
    return window.shift;
}"""
