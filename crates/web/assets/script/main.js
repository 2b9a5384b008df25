// The entry module of every page. Pages work without script; this adds what forms and links cannot do.

import { startConversation } from "./conversation.js";
import { addCopyButtons, clearStorageAtSignOut, enablePictureUpload, offerPasskeys } from "./forms.js";
import { enableLightbox } from "./lightbox.js";
import { followThreadList, pollLivePart } from "./live-pages.js";
import { thread } from "./page.js";
import { personalise } from "./personalise.js";
import { enableUploads } from "./uploads.js";

personalise(document);
addCopyButtons();
pollLivePart();
offerPasskeys();
enablePictureUpload();
clearStorageAtSignOut();
followThreadList();
enableLightbox();
enableUploads();
if (thread) startConversation();
