"""What a browser is told that it must not do for the chat page, whatever got into it."""

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data: blob:",
        "connect-src 'self'",
        "manifest-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        # No string becomes markup except by way of the sanitiser.
        "require-trusted-types-for 'script'",
        "trusted-types dompurify",
    )
)

SHARED_HEADERS = {
    "x-content-type-options": "nosniff",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
}

PAGE_HEADERS = SHARED_HEADERS | {
    "content-security-policy": CONTENT_SECURITY_POLICY,
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=(), payment=(), usb=()",
    "x-frame-options": "DENY",
}

REVALIDATED = {"cache-control": "no-cache"}
FOREVER = {"cache-control": "public, max-age=31536000, immutable"}
